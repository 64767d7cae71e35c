"use strict";(self.rspackChunkreyn_jupyter=self.rspackChunkreyn_jupyter||[]).push([[1],{20(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=o.n(a),d=o(23),p=o(24),l=o(25),s=o(26),h=o(27),c=o(28),x=o(29),g=o(30),v=o(31),b=o(32),f=o(33),u=o(34),m=n()(i());m.i(d.A),m.i(p.A),m.i(l.A),m.i(s.A),m.i(h.A),m.i(c.A),m.i(x.A),m.i(g.A),m.i(v.A),m.i(b.A),m.i(f.A),m.i(u.A),m.push([r.id,`/* Everything, for JupyterLab; a widget carries only its own part (./widgets). */
`,""]),o.d(e,{},{A:m})},32(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* A question about consent. What it shows scrolls in a box of its own, so that its answers are in sight. */
.reyn-view.reyn-view.reyn-view.reyn-view.r-approval {
  border-color: var(--r-warn);
  border-left-width: 4px;
  .r-button {
    font-size: 12px;
    padding: 3px 12px;
    white-space: normal;
    overflow-wrap: anywhere;
  }
  .r-answers > .r-button {
    max-height: 6.5em;
    overflow: auto;
  }
}
.reyn-view.reyn-view.reyn-view.reyn-view .r-question {
  > p {
    max-height: 6.5em;
    overflow: auto;
    overflow-wrap: anywhere;
  }
  pre {
    max-height: min(30vh, 320px);
    overflow: auto;
    white-space: pre-wrap;
    word-break: break-all;
  }
  /* Content stands behind a bar, so that no line of it looks like a word of ours. */
  .r-bar {
    margin-left: 10px;
    padding-left: 8px;
    border-left: 2px solid var(--r-line);
  }
  .r-cmd {
    margin-top: 8px;
    &:empty {
      display: none;
    }
  }
}
`,""]),o.d(e,{},{A:n})},26(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* The catalog explorer, from the width of a side panel on; the table and the open action are side by side where both
   have room. A row is one line, or two where the table is narrow. */
.reyn-view.reyn-view.reyn-view.reyn-view.r-explorer {
  container: explorer / inline-size;
  > .r-head,
  .r-calls,
  .r-form,
  .r-fields {
    display: flex;
    flex-direction: column;
    gap: 8px;
    min-width: 0;
  }
  .r-more:empty,
  .r-panes [hidden] {
    display: none;
  }
  :is(input, textarea, select) {
    font: inherit;
    box-sizing: border-box;
    width: 100%;
    margin: 0;
    padding: 3px 8px;
    min-height: 28px;
    border: 1px solid color-mix(in srgb, var(--r-fg) 45%, var(--r-bg));
    border-radius: 6px;
    background: var(--r-bg);
    color: var(--r-fg);
    &::placeholder {
      color: var(--r-quiet);
      opacity: 1;
    }
    &[aria-invalid="true"] {
      border-color: var(--r-bad);
    }
  }
  textarea {
    font: 12px/1.5 var(--r-mono);
    resize: vertical;
  }
  [type="search"] {
    flex: 1 1 170px;
    max-width: 420px;
  }
  .r-chips {
    display: flex;
    gap: 4px;
    overflow: auto;
    max-height: 84px;
    scrollbar-width: thin;
    padding: 2px;
  }
  .r-chips > button {
    flex: none;
    border-radius: 11px;
    line-height: 20px;
    font-size: 12px;
  }
  [aria-pressed="true"],
  [type="submit"] {
    background: color-mix(in srgb, var(--r-info) 18%, var(--r-bg));
    border-color: var(--r-info);
  }
  .r-pick {
    width: auto;
    max-height: 420px;
    border: 0;
    border-radius: 0;
  }
  .r-opened .r-pick {
    max-height: 230px;
  }
  .r-actions {
    display: block;
    padding-bottom: 30px;
    box-sizing: content-box;
    &:focus-visible {
      outline: 0;
    }
    &:focus-visible [aria-selected="true"] {
      outline: 2px solid var(--r-info);
      outline-offset: -2px;
    }
    thead,
    tbody,
    th,
    td {
      display: block;
    }
    thead {
      position: sticky;
      top: 0;
      z-index: 2;
      background: color-mix(in srgb, var(--r-fg) 4%, var(--r-bg));
    }
    tr {
      display: grid;
      grid-template-columns: minmax(0, 2fr) 0.95fr 2.7fr 1.2fr 60px 94px 46px 64px;
      align-items: center;
      height: 30px;
      box-sizing: border-box;
      border-bottom: 1px solid var(--r-line);
      padding: 0 6px;
    }
    tbody tr {
      cursor: pointer;
    }
    tr :is(th, td) {
      position: static;
      border: 0;
      padding: 0 6px;
      min-width: 0;
      max-width: none;
      overflow: hidden;
      text-overflow: ellipsis;
      background: none;
    }
    code {
      white-space: nowrap;
    }
    td:nth-child(4) {
      font-family: var(--r-mono);
    }
    :nth-child(n + 7):is(th, td) {
      text-align: right;
    }
    .r-group.r-group.r-group {
      display: flex;
      cursor: default;
      background: var(--r-soft);
      td {
        display: block;
        grid-area: auto;
        font-family: inherit;
        color: var(--r-fg);
      }
    }
    [aria-selected="true"]:nth-child(n) {
      background: color-mix(in srgb, var(--r-info) 14%, var(--r-bg));
    }
  }
  .r-narrow .r-actions {
    thead tr {
      display: flex;
      &::before {
        content: "sort by" / "";
        color: var(--r-quiet);
        padding-left: 6px;
        white-space: nowrap;
      }
    }
    th:not(:nth-child(1), :nth-child(5), :nth-child(7)),
    td:not(:nth-child(3), :nth-child(5)) {
      display: none;
    }
    tbody tr {
      height: 50px;
      grid-template: auto auto / minmax(0, 1fr) auto;
      align-content: center;
    }
    td:nth-child(3) {
      grid-area: 2 / 1 / 3 / 3;
      color: var(--r-quiet);
    }
    td:nth-child(5) {
      grid-area: 1 / 2;
    }
  }
  .r-remark {
    padding: 6px 14px;
    color: var(--r-quiet);
    font-size: 12px;
  }
  .r-notes:not(:empty),
  .r-calls {
    padding: 4px 14px 12px;
  }
  .r-detail {
    border-top: 1px solid var(--r-line);
    position: relative;
    min-width: 0;
  }
  .r-one > div > .reyn-view {
    border: 0;
    margin: 0;
    > .r-head {
      padding-right: 48px;
    }
  }
  .r-close {
    position: absolute;
    top: 10px;
    right: 10px;
    z-index: 1;
  }
  .r-result {
    display: flex;
    flex-direction: column;
    gap: 4px;
  }
  .r-form .r-button,
  .r-result > div > .r-top > .r-button {
    font-size: 12px;
    line-height: 20px;
    padding: 2px 10px;
  }
  .r-wrong {
    font-size: 12px;
    border-left: 3px solid var(--r-bad);
    padding-left: 7px;
    overflow-wrap: anywhere;
  }
}
@container explorer (min-width: 760px) {
  .reyn-view.reyn-view.reyn-view.reyn-view.r-explorer {
    .r-chips {
      flex-wrap: wrap;
    }
    .r-opened {
      display: grid;
      grid-template-columns: 5fr 6fr;
      .r-pick {
        max-height: 560px;
      }
      .r-detail {
        border-top: 0;
        border-left: 1px solid var(--r-line);
      }
    }
  }
}
`,""]),o.d(e,{},{A:n})},27(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* The data grid. Rows are laid out one by one, so that a million of them need no layout; widths come from --columns. */
.reyn-view.reyn-view.reyn-view.reyn-view {
  .r-grid {
    position: relative;
    display: flex;
    flex-direction: column;
    gap: 6px;
    min-width: 0;
    input,
    select {
      font: inherit;
      font-size: 12px;
      color: inherit;
      background: var(--r-bg);
      border: 1px solid var(--r-quiet);
      border-radius: 4px;
      padding: 1px 5px;
    }
    input[type="number"] {
      width: 78px;
    }
  }
  .r-grid .r-line {
    gap: 5px;
  }
  .r-take {
    margin-left: auto;
  }
  .r-port {
    overflow: auto;
    box-sizing: border-box;
    height: 417px;
    resize: vertical;
    border: 1px solid var(--r-line);
    border-radius: 6px;
    overscroll-behavior: contain;
    table {
      display: block;
      box-sizing: content-box;
      padding-bottom: 62px;
      width: max-content;
      min-width: 100%;
    }
    thead {
      display: block;
      position: sticky;
      top: 0;
      z-index: 2;
      background: var(--r-bg);
    }
    tbody {
      display: block;
    }
    tr {
      display: grid;
      grid-template-columns: var(--columns);
      grid-auto-columns: minmax(0, 1fr);
      grid-auto-flow: column;
      background: var(--r-bg);
      /* What the columns leave of the width. */
      &::after {
        content: "";
        border-bottom: 1px solid var(--r-line);
      }
    }
    thead tr {
      background: var(--r-soft);
    }
    .r-cell {
      box-sizing: border-box;
      height: 25px;
      max-width: none;
      line-height: 17px;
      padding: 3px 8px;
      overflow: hidden;
      text-overflow: ellipsis;
      white-space: pre;
      border-bottom: 1px solid var(--r-line);
    }
    thead .r-cell {
      position: relative;
      height: 62px;
      padding-right: 24px;
      cursor: pointer;
      background: var(--r-soft);
      .r-quiet {
        display: block;
        font-size: 11px;
        line-height: 14px;
      }
    }
    .r-name {
      display: flex;
      gap: 4px;
    }
    .r-right .r-name {
      justify-content: flex-end;
    }
    bdi {
      overflow: hidden;
      text-overflow: ellipsis;
    }
    .r-arrow {
      color: var(--r-link);
    }
    .r-cell.r-stick {
      position: sticky;
      z-index: 1;
      background: color-mix(in srgb, var(--r-fg) 4%, var(--r-bg));
    }
    tbody .r-stick {
      color: var(--r-quiet);
    }
  }
  .r-more-button {
    position: absolute;
    right: 2px;
    top: 2px;
    width: 20px;
    height: 20px;
    padding: 0;
    border: 0;
    border-radius: 4px;
    background: none;
    color: var(--r-quiet);
    cursor: pointer;
    &:hover {
      background: var(--r-line);
    }
    &.r-on {
      color: var(--r-bg);
      background: var(--r-link);
    }
  }
  .r-status {
    font-size: 12px;
    color: var(--r-quiet);
    font-variant-numeric: tabular-nums;
    min-height: 18px;
  }
  .r-pop {
    position: absolute;
    z-index: 4;
    box-sizing: border-box;
    width: max-content;
    max-width: min(520px, calc(100% - 8px));
    max-height: calc(100% - 8px);
    overflow: auto;
    padding: 8px 10px;
    background: var(--r-bg);
    border: 1px solid var(--r-quiet);
    border-radius: 8px;
    box-shadow: 0 4px 16px color-mix(in srgb, black 25%, transparent);
    font-size: 12px;
    &:not([hidden]) {
      display: flex;
      flex-wrap: wrap;
      gap: 8px;
    }
    > :not(.r-button) {
      flex: 1 1 100%;
    }
    > .r-bar {
      justify-content: flex-start;
    }
    > .r-button {
      border-color: var(--r-line);
      color: var(--r-fg);
    }
    .r-list {
      gap: 1px 14px;
    }
  }
  .r-spark {
    display: block;
    svg {
      display: block;
      width: 72px;
      max-width: 100%;
      height: 18px;
      overflow: hidden;
    }
    .r-bar-of {
      fill: var(--r-info);
      opacity: 0.6;
    }
    .r-room {
      fill: transparent;
    }
    [data-bar] {
      cursor: pointer;
    }
    [data-bar]:hover .r-bar-of {
      opacity: 1;
    }
  }
  .r-right .r-spark svg {
    margin-left: auto;
  }
  .r-bins {
    margin-bottom: 6px;
    svg {
      display: block;
      width: 100%;
      height: 44px;
      fill: var(--r-info);
    }
  }
  .r-ends,
  .r-top-value {
    display: flex;
    justify-content: space-between;
    gap: 12px;
  }
  .r-top-value {
    margin-top: 2px;
    padding: 0 6px;
    border-radius: 3px;
    background: linear-gradient(color-mix(in srgb, var(--r-info) 20%, transparent) 0 0) no-repeat 0 /
      var(--share) 100%;
  }
}
`,""]),o.d(e,{},{A:n})},33(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* The side panel, from 300 px on: the question, what waits, the answer, lists of what there is. */
.reyn-view.reyn-view.reyn-view.reyn-view.r-home {
  border: 0;
  overflow: visible;
  contain: none;
  display: flex;
  flex-direction: column;
  gap: 10px;
  padding: 8px 4px;
  background: none;
  .r-ask,
  .r-home-part {
    display: flex;
    flex-direction: column;
    gap: 6px;
    min-width: 0;
  }
  .r-ask textarea {
    font: inherit;
    box-sizing: border-box;
    width: 100%;
    min-height: 46px;
    max-height: 40vh;
    field-sizing: content;
    resize: vertical;
    padding: 5px 8px;
    border: 1px solid color-mix(in srgb, var(--r-fg) 45%, var(--r-bg));
    border-radius: 6px;
    background: var(--r-bg);
    color: var(--r-fg);
    &::placeholder {
      color: var(--r-quiet);
      opacity: 1;
    }
  }
  .r-ask-row,
  .r-home-head {
    display: flex;
    justify-content: space-between;
    align-items: center;
    gap: 8px;
  }
  .r-ask-row .r-facts {
    min-width: 0;
  }
  .r-primary {
    flex: none;
    background: color-mix(in srgb, var(--r-info) 18%, var(--r-bg));
    border-color: var(--r-info);
  }
  .r-why {
    display: block;
  }
  .r-home-head > .r-h,
  .r-waiting > .r-h,
  .r-home-part > summary {
    margin: 0;
    font-size: 13px;
    font-weight: 600;
  }
  .r-home-part > summary {
    cursor: pointer;
    padding: 2px 0;
  }
  .r-asked {
    color: var(--r-quiet);
    display: -webkit-box;
    -webkit-box-orient: vertical;
    -webkit-line-clamp: 3;
    overflow: hidden;
    overflow-wrap: anywhere;
  }
  .r-answer-body {
    max-height: 60vh;
    overflow: auto;
    summary {
      flex-wrap: wrap;
      white-space: normal;
    }
  }
  .r-entries {
    list-style: none;
    padding: 0;
    max-height: 320px;
    overflow: auto;
    &:empty {
      display: none;
    }
  }
  .r-entries > li {
    margin: 0;
  }
  .r-entry {
    display: block;
    width: 100%;
    padding: 4px 6px;
    border: 0;
    border-radius: 6px;
    background: none;
    color: inherit;
    font: inherit;
    text-align: left;
    cursor: pointer;
    &:hover {
      background: color-mix(in srgb, var(--r-fg) 6%, transparent);
    }
  }
  .r-entry > span {
    display: block;
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  .r-server-part {
    display: flex;
    flex-direction: column;
    gap: 6px;
    min-width: 0;
  }
  .r-servers {
    list-style: none;
    margin: 0;
    padding: 0;
    &:empty {
      display: none;
    }
  }
  .r-servers > li {
    margin: 0;
  }
  .r-server > summary {
    display: block;
    padding: 4px 6px;
    border-radius: 6px;
    cursor: pointer;
    &:hover {
      background: color-mix(in srgb, var(--r-fg) 6%, transparent);
    }
  }
  .r-server-head {
    display: flex;
    align-items: center;
    justify-content: space-between;
    gap: 8px;
  }
  .r-server-name {
    min-width: 0;
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  .r-server > summary > .r-entry-facts {
    display: block;
  }
  .r-server[open] {
    padding-bottom: 6px;
  }
  .r-server > :not(summary) {
    margin: 4px 6px;
  }
  .r-server-why {
    margin: 0 0 4px;
    overflow-wrap: anywhere;
  }
  .r-server-facts {
    display: grid;
    grid-template-columns: auto minmax(0, 1fr);
    gap: 2px 8px;
    margin: 0;
    font-size: 12px;
    dt {
      color: var(--r-quiet);
    }
    dd {
      margin: 0;
      overflow-wrap: anywhere;
    }
  }
  .r-question pre span {
    word-break: normal;
    overflow-wrap: anywhere;
  }
  .r-server-log {
    margin: 0;
    max-height: 220px;
    overflow: auto;
    white-space: pre-wrap;
    overflow-wrap: anywhere;
    font-size: 11px;
  }
  .r-server-form {
    display: flex;
    flex-direction: column;
    gap: 4px;
    input:not([type="checkbox"]) {
      font: inherit;
      box-sizing: border-box;
      width: 100%;
      padding: 4px 8px;
      border: 1px solid color-mix(in srgb, var(--r-fg) 45%, var(--r-bg));
      border-radius: 6px;
      background: var(--r-bg);
      color: var(--r-fg);
    }
  }
  .r-entry-facts {
    color: var(--r-quiet);
    font-size: 12px;
    font-variant-numeric: tabular-nums;
  }
  [hidden],
  .r-waiting:has(> .r-questions:empty) {
    display: none;
  }
}
`,""]),o.d(e,{},{A:n})},34(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* The rooms that JupyterLab gives the views: an output, the side panel, a tab, a dialog. */
.reyn-output {
  padding: 0;
  overflow: auto;
}
/* JupyterLab breaks the words of an error anywhere; ours are sentences, with lines to copy. The page knows an error only
   as text on the error stream, so that those of others keep their words whole too. */
.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.stderr"] pre {
  word-break: normal;
  overflow-wrap: anywhere;
}
.reyn-panel,
.reyn-tab {
  background: var(--jp-layout-color1);
  color: var(--jp-ui-font-color1);
  overflow: auto;
}
.reyn-panel {
  display: flex;
  flex-direction: column;
  min-width: 0; /* Notebook 7 gives it 250 pixels, whatever it asks for */
}
.reyn-panel-notebook {
  padding: 6px 10px;
  border-bottom: var(--jp-border-width) solid var(--jp-border-color1);
  font-size: var(--jp-ui-font-size1);
  font-weight: 600;
  white-space: nowrap;
  overflow: hidden;
  text-overflow: ellipsis;
  flex: none;
}
.reyn-panel-notebook:empty {
  display: none;
}
.reyn-panel-body {
  flex: 1;
  min-height: 0;
  overflow: auto;
  padding: 0 6px;
}
.reyn-panel .reyn-view.reyn-view.reyn-view.reyn-view.reyn-view .r-pick {
  max-height: max(260px, 60vh);
}
.reyn-panel-status {
  flex: none;
}
.reyn-panel-status:not(:empty) {
  padding-bottom: 8px;
  border-bottom: var(--jp-border-width) solid var(--jp-border-color1);
}
.reyn-panel-help {
  padding: 12px 6px;
  margin: 0;
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size1);
  line-height: var(--jp-content-line-height);
}
.reyn-tab {
  padding: 8px 12px;
  .reyn-view.reyn-view {
    max-width: none;
  }
}
.reyn-panel-help code {
  font-family: var(--jp-code-font-family);
  font-size: var(--jp-code-font-size);
}
.reyn-panel-button {
  margin: 0 6px;
  padding: 4px 10px;
  border: 1px solid var(--jp-border-color1);
  border-radius: 4px;
  background: var(--jp-layout-color2);
  color: var(--jp-ui-font-color1);
  font: inherit;
  cursor: pointer;
}
/* A question below the cell that waits for its answer. */
.reyn-question {
  margin: 4px 8px 4px calc(var(--jp-cell-prompt-width) + var(--jp-cell-collapser-width));
  max-width: 900px;
  overflow: visible;
}
/* A prompt for the answer that a card above it takes. */
.reyn-prompt {
  display: none;
}
.reyn-approval {
  width: min(850px, 84vw);
}
/* A question about consent has room for what it shows; JupyterLab's own dialogs end at 500 px. */
.jp-Dialog-content:has(.reyn-approval) {
  max-width: 90vw;
  max-height: 90vh;
}
`,""]),o.d(e,{},{A:n})},25(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* What the HTML does not have: buttons, headings that sort, the line that says where the kernel stands. */
.reyn-view.reyn-view.reyn-view {
  .r-button {
    font: inherit;
    font-size: 11px;
    line-height: 17px;
    padding: 0 7px;
    margin: 0;
    border: 1px solid var(--r-line);
    border-radius: 5px;
    background: var(--r-bg);
    color: var(--r-fg);
    cursor: pointer;
    white-space: nowrap;
    &:hover {
      background: var(--r-soft);
      border-color: var(--r-quiet);
    }
    &:disabled {
      color: var(--r-quiet);
      cursor: default;
    }
  }
  .r-copy {
    border-color: transparent;
    background: none;
    color: var(--r-quiet);
    padding: 0 5px;
  }
  .r-line {
    display: inline-flex;
    align-items: center;
    gap: 2px;
    min-width: 0;
  }
  .r-code {
    position: relative;
    > .r-copy {
      position: absolute;
      right: 4px;
      top: 1px;
      background: var(--r-bg);
      border-color: var(--r-line);
      opacity: 0;
    }
    &:hover > .r-copy,
    &:focus-within > .r-copy {
      opacity: 1;
    }
  }
  .r-sort {
    font: inherit;
    color: inherit;
    background: none;
    border: 0;
    padding: 0;
    margin: 0;
    cursor: pointer;
    text-align: inherit;
    border-radius: 3px;
    &:hover {
      text-decoration: underline;
      text-underline-offset: 3px;
    }
  }
  th[aria-sort="ascending"] .r-sort::after {
    content: " ↑" / "";
  }
  th[aria-sort="descending"] .r-sort::after {
    content: " ↓" / "";
  }
  .r-said {
    position: absolute;
    width: 1px;
    height: 1px;
    overflow: hidden;
    clip-path: inset(50%);
  }
  &.r-state {
    border: 0;
    padding: 0 14px;
    font-size: 12px;
    color: var(--r-quiet);
    &[hidden] {
      display: none;
    }
  }
  @media (hover: none) {
    .r-code > .r-copy {
      opacity: 1;
    }
  }
}
`,""]),o.d(e,{},{A:n})},28(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* What is waited for: how far it is, a button that stops it, or what went wrong. */
.reyn-view.reyn-view.reyn-view {
  &.r-alone {
    border: 0;
  }
  .r-requests {
    font-size: 12px;
    .r-line {
      display: flex;
      gap: 8px;
    }
    progress {
      width: 120px;
      accent-color: var(--r-info);
    }
  }
}
`,""]),o.d(e,{},{A:n})},30(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* The text pager. */
.reyn-view.reyn-view.reyn-view.reyn-view {
  .r-pager {
    overflow: auto;
    border: 1px solid var(--r-line);
    border-radius: 6px;
    font: 12px/18px var(--r-mono);
    tab-size: 4;
  }
  .r-text {
    width: max-content;
    min-width: 100%;
  }
  .r-numbered {
    height: 18px;
    white-space: pre;
    unicode-bidi: isolate;
    .r-no {
      position: sticky;
      left: 0;
      display: inline-block;
      box-sizing: content-box;
      padding: 0 10px 0 8px;
      margin-right: 10px;
      text-align: right;
      background: var(--r-soft);
    }
    .r-button {
      position: sticky;
      right: 6px;
      margin-left: 8px;
      line-height: 14px;
    }
  }
  .r-hit,
  .r-hit .r-no {
    background: color-mix(in srgb, var(--r-info) 16%, var(--r-bg));
  }
  mark {
    color: var(--r-fg);
    background: color-mix(in srgb, var(--r-warn) 45%, var(--r-bg));
    border-radius: 2px;
  }
  .r-bar label {
    display: inline-flex;
    align-items: center;
    gap: 2px;
  }
  .r-goto {
    width: 100px;
    margin-left: auto;
  }
  .r-long:not([hidden]) {
    display: flex;
    flex-direction: column;
    gap: 4px;
  }
}
`,""]),o.d(e,{},{A:n})},31(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* The trace viewer and the diff of two runs: lists to choose from, and what stands behind a line. */
.reyn-view.reyn-view.reyn-view.reyn-view {
  .r-run,
  .r-part {
    border-top: 1px solid var(--r-line);
  }
  .r-run {
    display: grid;
    grid-template-columns: minmax(260px, 38%) minmax(0, 1fr);
    > .r-filtered {
      border-right: 1px solid var(--r-line);
    }
    > .r-more {
      grid-column: 1/-1;
      padding: 0 14px 6px;
    }
  }
  .r-run,
  .r-bar,
  .r-more {
    &[hidden] {
      display: none;
    }
  }
  &.r-trace,
  &.r-difference {
    container-type: inline-size;
  }
  .r-details {
    margin: 0 14px 12px;
    > .r-bar {
      padding-top: 6px;
    }
  }
  .r-part > .r-filtered {
    border: 1px solid var(--r-line);
    border-radius: 6px;
    overflow: hidden;
  }
  .r-bar {
    padding: 0 14px 6px;
    font-size: 12px;
    &:empty {
      display: none;
    }
  }
  .r-filtered > .r-bar {
    padding: 5px 8px;
    border-bottom: 1px solid var(--r-line);
  }
  .r-find,
  .r-select {
    font: inherit;
    color: inherit;
    background: var(--r-bg);
    border: 1px solid var(--r-line);
    border-radius: 5px;
    padding: 1px 6px;
    min-width: 0;
    max-width: 100%;
  }
  .r-listbox {
    overflow: auto;
    font-size: 12px;
  }
  .r-option {
    box-sizing: border-box;
    position: relative;
    padding: 4px 10px;
    border-bottom: 1px solid var(--r-line);
    cursor: pointer;
    overflow: hidden;
    &:hover {
      background: var(--r-soft);
    }
    &[aria-selected="true"] {
      background: color-mix(in srgb, var(--r-info) 12%, var(--r-bg));
      box-shadow: inset 3px 0 var(--r-info);
    }
  }
  .r-row {
    display: flex;
    gap: 6px;
    align-items: center;
    line-height: 18px;
    .r-aside {
      margin-left: auto;
      font-size: 11px;
    }
  }
  .r-name,
  .r-about {
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  .r-name {
    font-weight: 600;
  }
  .r-about {
    font: 11px/15px var(--r-mono);
    color: var(--r-quiet);
  }
  .r-deep1 {
    padding-left: 14px;
    .r-name {
      font-family: var(--r-mono);
      font-weight: 500;
    }
  }
  .r-time {
    position: absolute;
    bottom: 0;
    height: 3px;
    min-width: 2px;
    background: var(--t, var(--r-fg));
  }
  .r-run > .r-detail {
    padding: 8px 14px 12px;
    max-height: 540px;
    overflow: auto;
  }
  .r-run > .r-detail,
  .r-part {
    pre {
      max-height: none;
    }
  }
  .r-side {
    display: flex;
    flex-direction: column;
    gap: 5px;
  }
  .r-side + .r-side {
    margin-top: 12px;
  }
  .r-two {
    display: grid;
    grid-template-columns: repeat(2, minmax(0, 1fr));
    gap: 14px;
    > .r-side {
      margin: 0;
      border: 1px solid var(--r-line);
      border-radius: 6px;
      padding: 6px 10px 10px;
      max-height: 460px;
      overflow: auto;
    }
  }
  .r-part .r-option {
    display: grid;
    grid-template-columns: 24px minmax(0, 1fr) minmax(0, 1fr) 120px;
    gap: 8px;
    align-items: center;
    code {
      background: none;
    }
  }
  .r-compared > .reyn-view {
    margin: 0;
    border-width: 1px 0 0;
    border-radius: 0;
  }
  @container (max-width: 620px) {
    .r-run,
    .r-two {
      grid-template-columns: minmax(0, 1fr);
    }
  }
}
`,""]),o.d(e,{},{A:n})},29(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* The frame of the inspector (tabs, bars), and the tree. */
.reyn-view.reyn-view.reyn-view.reyn-view {
  .r-tabs:not([hidden]) {
    display: flex;
    gap: 2px;
    border-bottom: 1px solid var(--r-line);
  }
  .r-tab {
    font: inherit;
    padding: 3px 12px;
    border: 0;
    border-bottom: 2px solid transparent;
    border-radius: 5px 5px 0 0;
    background: none;
    color: var(--r-quiet);
    cursor: pointer;
    &[aria-selected="true"] {
      color: var(--r-fg);
      border-color: var(--r-info);
      font-weight: 600;
    }
    &:hover {
      background: var(--r-soft);
    }
  }
  .r-pane:not([hidden]) {
    display: flex;
    flex-direction: column;
    gap: 6px;
  }
  .r-pane .r-bar,
  .r-grid .r-bar,
  .r-cmds {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 4px 8px;
    font-size: 12px;
    min-height: 22px;
    padding: 0;
  }
  .r-cmds .r-line {
    gap: 6px;
  }
  .r-label {
    white-space: nowrap;
  }
  .r-cmds {
    gap: 2px 16px;
    margin-top: 4px;
  }
  .r-where {
    flex: 1;
    min-width: 0;
    max-height: 38px;
    overflow: auto;
  }
  .r-pane .r-find,
  .r-goto {
    font: inherit;
    color: inherit;
    background: var(--r-bg);
    border: 1px solid var(--r-quiet);
    border-radius: 5px;
    padding: 1px 7px;
    width: 230px;
    max-width: 100%;
    box-sizing: border-box;
    &::placeholder {
      color: var(--r-quiet);
      opacity: 1;
    }
  }
  .r-nodes {
    overflow: auto;
    border: 1px solid var(--r-line);
    border-radius: 6px;
    font: 12px/22px var(--r-mono);
    & > div > div {
      width: max-content;
      min-width: 100%;
    }
  }
  .r-node {
    height: 22px;
    padding-right: 10px;
    white-space: pre;
    cursor: default;
    unicode-bidi: isolate;
    &:hover {
      background: var(--r-soft);
    }
    &[aria-selected="true"] {
      background: color-mix(in srgb, var(--r-info) 16%, var(--r-bg));
    }
  }
  .r-twist {
    display: inline-block;
    width: 14px;
    color: var(--r-quiet);
  }
}
`,""]),o.d(e,{},{A:n})},24(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* Charts, and two views side by side; only what shows one carries this. Lines are as dark as text in both themes: a
   tone tints them, words say what they mean. */
.reyn-view.reyn-view.reyn-view {
  .r-scroll.r-chart {
    container-type: inline-size;
    width: auto;
    max-height: none;
    table {
      width: 100%;
    }
    caption {
      caption-side: top;
      padding-bottom: 6px;
      color: var(--r-fg);
      font-weight: 600;
    }
    .r-quiet {
      font-size: 11px;
      font-weight: 400;
    }
    th,
    td {
      white-space: normal;
      vertical-align: middle;
    }
    th {
      width: 30%;
    }
    td:last-child {
      width: 20%;
    }
    tfoot td {
      border: 0;
      padding-top: 0;
    }
    .r-plot {
      min-width: 130px;
      max-width: none;
      padding-inline: 12px;
    }
    /* On a narrow page what a row is called stands above its drawing. */
    @container (width < 560px) {
      .r-axis:has(:nth-of-type(4)) text:nth-of-type(2n) {
        display: none;
      }
      :is(table, caption, tbody, tfoot) {
        display: block;
      }
      tr {
        display: grid;
        grid-template-columns: minmax(0, 1fr) 11.5em;
        align-items: center;
      }
      tr > *,
      td:last-child {
        width: auto;
        max-width: none;
        border: 0;
      }
      tbody tr:not(:last-child) {
        border-bottom: 1px solid var(--r-line);
      }
      th {
        grid-column: 1 / -1;
        padding-bottom: 0;
        br {
          display: none;
        }
        .r-quiet {
          margin-left: 8px;
        }
      }
      tfoot td:first-child {
        display: none;
      }
    }
  }
  .r-track,
  .r-axis {
    display: block;
    width: 100%;
    height: 22px;
    overflow: visible;
    --l: color-mix(in srgb, var(--t, var(--r-fg)) 55%, var(--r-fg));
  }
  .r-axis {
    height: 18px;
  }
  svg text {
    fill: var(--r-fg);
    font-size: 11px;
  }
  svg line {
    stroke: var(--r-quiet);
  }
  .r-track.r-muted,
  g.r-muted {
    --t: var(--r-quiet);
  }
  .r-fill {
    fill: color-mix(in srgb, var(--t, var(--r-info)) 30%, var(--r-bg));
  }
  svg .r-zero {
    stroke-dasharray: 3 3;
  }
  svg .r-range {
    stroke: var(--l, var(--r-fg));
    stroke-width: 1.5;
  }
  svg .r-estimate {
    stroke: var(--l);
    stroke-width: 4;
  }
  .r-reference {
    fill: var(--r-bg);
    stroke: var(--r-fg);
    stroke-width: 1.5;
  }
  .r-scatter {
    overflow-x: auto;
    svg {
      display: block;
      width: 100%;
      min-width: 380px;
      max-width: 520px;
    }
    .r-rule {
      stroke: var(--r-line);
    }
  }
  .r-point {
    fill: color-mix(in srgb, var(--t, var(--r-info)) 70%, var(--r-fg));
    stroke: var(--r-bg);
  }
  /* A report is read from top to bottom, without boxes that scroll in it. */
  .r-sec > .r-scroll {
    max-height: none;
    /* What a row is called stays in sight while the columns beside it are scrolled through. */
    tbody th:not(.r-wide),
    table:has(tbody th:not(.r-wide)) thead th:first-child {
      position: sticky;
      left: 0;
    }
    tbody th {
      background: var(--r-bg);
    }
    thead th:first-child {
      z-index: 2;
    }
  }
  .r-pair {
    display: grid;
    grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr));
    gap: 10px 16px;
    > * {
      min-width: 0;
    }
  }
}
`,""]),o.d(e,{},{A:n})},23(r,e,o){var t=o(21),i=o.n(t),a=o(22),n=(o.n(a))()(i());n.push([r.id,`/* The one style sheet of the HTML views, scoped to .reyn-view.

   Colours come from the host: JupyterLab's variables, else VS Code's, else a light-dark pair. Words carry every
   state; a tone only tints what stands behind them, so that contrast is the host's own in both themes. The class is
   named twice to win over the host's own rules for tables and code in outputs. Sheets meet on a page in any order, and
   this one may come again after the others: what changes it (charts, buttons) names the class three times, a kind of
   live view four times. */
.reyn-view.reyn-view {
  color-scheme: light dark;
  --r-bg: var(--jp-layout-color0, var(--vscode-editor-background, light-dark(#fff, #14171c)));
  --r-fg: var(--jp-ui-font-color1, var(--vscode-editor-foreground, light-dark(#1c2128, #e6e9ee)));
  --r-quiet: color-mix(in srgb, var(--r-fg) 74%, var(--r-bg));
  --r-line: color-mix(in srgb, var(--r-fg) 15%, var(--r-bg));
  --r-soft: color-mix(in srgb, var(--r-fg) 4%, var(--r-bg));
  --r-good: var(--jp-success-color1, light-dark(#2da44e, #3fb950));
  --r-bad: var(--jp-error-color1, light-dark(#cf222e, #f85149));
  --r-warn: var(--jp-warn-color1, light-dark(#d4880f, #d29922));
  --r-info: var(--jp-brand-color1, light-dark(#1976d2, #58a6ff));
  --r-link: var(--jp-content-link-color, light-dark(#0b5cad, #79b8ff));
  --r-mono: var(--jp-code-font-family, ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace);
  background: var(--r-bg);
  color: var(--r-fg);
  font: 13px/1.5 var(--jp-ui-font-family, system-ui, -apple-system, "Segoe UI", sans-serif);
  border: 1px solid var(--r-line);
  border-radius: 8px;
  margin: 4px 0;
  overflow: hidden;
  contain: paint;
  max-width: 1100px;
  p, dl, ul, ol, pre, blockquote {
    margin: 0;
    font-size: inherit;
    line-height: inherit;
  }
  pre, code {
    font-family: var(--r-mono);
    font-size: 12px;
    color: inherit;
    background: none;
    border: 0;
  }
  code {
    white-space: inherit;
    padding: 1px 4px;
    border-radius: 4px;
    background: color-mix(in srgb, var(--r-fg) 7%, transparent);
    overflow-wrap: anywhere;
  }
  pre {
    white-space: pre-wrap;
    word-break: normal; /* JupyterLab breaks the words of outputs anywhere */
    overflow-wrap: anywhere;
    padding: 8px 10px;
    background: var(--r-soft);
    border-radius: 6px;
    max-height: 360px;
    overflow: auto;
    tab-size: 4;
  }
  a {
    color: var(--r-link);
    text-decoration: underline;
    text-underline-offset: 2px;
  }
  hr {
    border: 0;
    border-top: 1px solid var(--r-line);
    margin: 0;
  }
  ul, ol {
    padding-left: 22px;
  }
  li {
    margin: 2px 0;
  }
  blockquote {
    border-left: 3px solid var(--r-line);
    padding: 2px 0 2px 12px;
    color: var(--r-quiet);
  }
  :focus-visible {
    outline: 2px solid var(--r-info);
    outline-offset: -2px;
  }
  .r-head {
    padding: 9px 14px;
    border-bottom: 1px solid var(--r-line);
    background: var(--r-soft);
  }
  .r-top, .r-cmd, .r-tools {
    display: flex;
    flex-wrap: wrap;
    gap: 4px 8px;
    align-items: center;
  }
  .r-title {
    font-size: 14px;
    overflow-wrap: anywhere;
  }
  .r-facts {
    color: var(--r-quiet);
    font-size: 12px;
    overflow-wrap: anywhere;
    font-variant-numeric: tabular-nums;
  }
  .r-body {
    padding: 12px 14px;
    display: flex;
    flex-direction: column;
    gap: 10px;
  }
  .r-body > * {
    min-width: 0;
  }
  .r-h {
    font-size: 14px;
  }
  .r-quiet, .r-more, .r-label, .r-aside, .r-hint {
    color: var(--r-quiet);
  }
  .r-more, .r-label {
    font-size: 12px;
  }
  .r-more {
    margin-top: 4px;
  }
  .r-label strong {
    font-weight: 600;
  }
  .r-badge {
    display: inline-block;
    padding: 0 7px;
    border-radius: 9px;
    font-size: 11px;
    line-height: 17px;
    white-space: nowrap;
    --t: var(--r-fg);
    background: color-mix(in srgb, var(--t) 14%, var(--r-bg));
    box-shadow: inset 0 0 0 1px color-mix(in srgb, var(--t) 38%, var(--r-bg));
    color: var(--r-fg);
  }
  .r-badge.r-muted, .r-badge.r-plain {
    background: none;
    box-shadow: inset 0 0 0 1px var(--r-line);
  }
  .r-good {
    --t: var(--r-good);
  }
  .r-bad {
    --t: var(--r-bad);
  }
  .r-warn {
    --t: var(--r-warn);
  }
  .r-info {
    --t: var(--r-info);
  }
  .r-msg {
    border-left: 3px solid var(--t, var(--r-line));
    padding: 6px 10px;
    border-radius: 0 6px 6px 0;
    background: color-mix(in srgb, var(--t, var(--r-fg)) 7%, var(--r-bg));
    white-space: pre-line;
    overflow-wrap: anywhere;
  }
  .r-msg.r-muted {
    border: 0;
    padding: 0;
    background: none;
    color: var(--r-quiet);
    font-size: 12px;
  }
  .r-scroll {
    /* A shadow at the lower edge and at the right one as long as there is more: what is cut there goes on. */
    background: linear-gradient(transparent, var(--r-bg) 60%) bottom / 100% 32px no-repeat local,
      linear-gradient(to right, transparent, var(--r-bg) 60%) right / 32px 100% no-repeat local,
      linear-gradient(transparent, color-mix(in srgb, var(--r-fg) 16%, transparent)) bottom / 100% 12px no-repeat,
      linear-gradient(to right, transparent, color-mix(in srgb, var(--r-fg) 16%, transparent)) right / 12px 100% no-repeat;
    overflow: auto;
    max-height: 640px; /* the preview of 20 rows is whole */
    width: fit-content;
    max-width: 100%;
    box-sizing: border-box;
    border: 1px solid var(--r-line);
    border-radius: 6px;
  }
  table {
    border-collapse: separate;
    border-spacing: 0;
    min-width: 100%;
    margin: 0;
    font-size: 12px;
    table-layout: auto;
    border: 0;
    color: inherit;
  }
  caption {
    /* In sight wherever the table is scrolled to, on the line that closes the rows above it. */
    position: sticky;
    bottom: 0;
    box-shadow: 0 -1px var(--r-line);
    background: var(--r-bg);
    caption-side: bottom;
    text-align: left;
    padding: 4px 8px;
    color: var(--r-quiet);
  }
  table th, table td {
    text-align: left;
    vertical-align: top;
    padding: 4px 8px;
    border: 0;
    border-bottom: 1px solid var(--r-line);
    max-width: 340px;
    white-space: nowrap;
    overflow-wrap: anywhere;
    font-variant-numeric: tabular-nums;
    unicode-bidi: isolate;
  }
  thead th, thead td {
    position: sticky;
    top: 0;
    background: var(--r-soft);
    font-weight: 600;
    z-index: 1;
  }
  thead .r-quiet {
    font-weight: 400;
  }
  tbody th {
    font-weight: 500;
  }
  tbody tr:nth-child(n) {
    background: none;
  }
  tbody tr:last-child > * {
    border-bottom: 0;
  }
  tbody tr:nth-child(n):hover {
    background: var(--r-soft);
  }
  table .r-right {
    text-align: right;
  }
  table .r-wide {
    white-space: normal;
    min-width: 170px;
    max-width: 460px;
  }
  td code, th code {
    padding: 0;
    background: none;
    overflow-wrap: normal;
  }
  .r-lines {
    white-space: pre;
    overflow-wrap: normal;
  }
  .r-no {
    color: var(--r-quiet);
    user-select: none;
  }
  .r-cmd code {
    user-select: all;
    padding: 2px 8px;
  }
  .r-list {
    display: grid;
    grid-template-columns: minmax(90px, max-content) 1fr;
    gap: 3px 14px;
  }
  .r-list div {
    display: contents;
  }
  dt {
    float: none;
    width: auto;
    color: var(--r-quiet);
    font-weight: 400;
    margin: 0;
    padding: 0;
  }
  dd {
    margin: 0;
    padding: 0;
    overflow-wrap: anywhere;
    white-space: pre-line;
  }
  .r-sec {
    display: flex;
    flex-direction: column;
    gap: 4px;
  }
  details {
    margin: 0;
    padding: 0;
  }
  summary {
    cursor: pointer;
  }
  .r-fold, .r-tool > summary {
    border: 1px solid var(--r-line);
    border-radius: 6px;
  }
  .r-fold > summary, .r-tool > summary {
    display: flex;
    align-items: center;
    gap: 8px;
    padding: 3px 10px;
    border-radius: 6px;
    list-style: none;
  }
  .r-fold > summary::before {
    content: "›";
    color: var(--r-quiet);
    font-family: var(--r-mono);
    width: 8px;
  }
  .r-fold[open] > summary::before {
    content: "⌄";
  }
  .r-fold > summary:hover, .r-tool > summary:hover {
    background: var(--r-soft);
  }
  /* The button stays where it was pressed; what it opens takes a line of its own below the row. */
  .r-tool {
    display: contents;
  }
  .r-tool[open]::details-content, .r-tool > .r-in {
    order: 1;
    flex: 1 0 100%;
    min-width: 0;
  }
  .r-tool:not([open])::details-content {
    display: none;
  }
  .r-tool[open] > summary {
    border-color: var(--r-info);
  }
  .r-what {
    flex: 1;
    min-width: 0;
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  .r-what .r-quiet {
    font-family: var(--r-mono);
    font-size: 11px;
  }
  .r-aside {
    font-size: 12px;
    font-variant-numeric: tabular-nums;
    white-space: nowrap;
    max-width: 100%;
    overflow: hidden;
    text-overflow: ellipsis;
  }
  .r-in {
    padding: 4px 10px 10px;
    display: flex;
    flex-direction: column;
    gap: 6px;
  }
  .r-tree {
    font-family: var(--r-mono);
    font-size: 12px;
    overflow: auto;
    max-height: 420px;
  }
  .r-tree div, .r-tree details details {
    padding-left: 18px;
    overflow-wrap: anywhere;
  }
  .r-key {
    font-weight: 600;
  }
  .r-null, .r-other, .r-tree .r-more {
    color: var(--r-quiet);
  }
  .r-group > * + * {
    margin-top: 3px;
  }
  .r-media {
    margin: 0;
  }
  .r-media img {
    display: block;
    box-sizing: border-box;
    width: auto;
    height: auto;
    max-width: min(100%, 640px);
    max-height: 420px;
    background: light-dark(var(--r-bg), var(--r-fg)); /* a drawing on nothing is mostly dark */
    border: 1px solid var(--r-line);
    border-radius: 6px;
  }
  .r-picture {
    margin: 0;
    img {
      max-width: 100%;
    }
  }
  .r-media audio {
    display: block;
    width: min(100%, 420px);
  }
  .r-media figcaption {
    color: var(--r-quiet);
    font-size: 12px;
    margin-top: 3px;
    overflow-wrap: anywhere;
  }
  .r-diff pre {
    padding: 6px 0;
    margin-top: 3px;
  }
  .r-diff pre span {
    display: block;
    padding: 0 10px;
  }
  .r-add {
    background: color-mix(in srgb, var(--r-good) 17%, var(--r-bg));
  }
  .r-del {
    background: color-mix(in srgb, var(--r-bad) 15%, var(--r-bg));
  }
  .r-at {
    color: var(--r-quiet);
  }
}
[data-jp-theme-light=true] .reyn-view, .vscode-light .reyn-view {
  color-scheme: light;
}
[data-jp-theme-light=false] .reyn-view, .vscode-dark .reyn-view {
  color-scheme: dark;
}
/* A picture brings its white ground, readable everywhere; in the dark its lightness is turned round, the hues stay, and
   its ground, black then, lets the ground of the view through. */
[data-jp-theme-light=false] .r-picture, .vscode-dark .r-picture {
  filter: invert(1) hue-rotate(180deg);
  mix-blend-mode: screen;
}
`,""]),o.d(e,{},{A:n})},22(r){r.exports=function(r){var e=[];return e.toString=function(){return this.map(function(e){var o="",t=void 0!==e[5];return e[4]&&(o+="@supports (".concat(e[4],") {")),e[2]&&(o+="@media ".concat(e[2]," {")),t&&(o+="@layer".concat(e[5].length>0?" ".concat(e[5]):""," {")),o+=r(e),t&&(o+="}"),e[2]&&(o+="}"),e[4]&&(o+="}"),o}).join("")},e.i=function(r,o,t,i,a){"string"==typeof r&&(r=[[null,r,void 0]]);var n={};if(t)for(var d=0;d<this.length;d++){var p=this[d][0];null!=p&&(n[p]=!0)}for(var l=0;l<r.length;l++){var s=[].concat(r[l]);t&&n[s[0]]||(void 0!==a&&(void 0===s[5]||(s[1]="@layer".concat(s[5].length>0?" ".concat(s[5]):""," {").concat(s[1],"}")),s[5]=a),o&&(s[2]&&(s[1]="@media ".concat(s[2]," {").concat(s[1],"}")),s[2]=o),i&&(s[4]?(s[1]="@supports (".concat(s[4],") {").concat(s[1],"}"),s[4]=i):s[4]="".concat(i)),e.push(s))}},e}},21(r){r.exports=function(r){return r[1]}},13(r,e,o){o.r(e);var t=o(14),i=o.n(t),a=o(15),n=o.n(a),d=o(16),p=o.n(d),l=o(17),s=o.n(l),h=o(18),c=o.n(h),x=o(19),g=o.n(x),v=o(20),b={};b.styleTagTransform=g(),b.setAttributes=s(),b.insert=p().bind(null,"head"),b.domAPI=n(),b.insertStyleElement=c(),i()(v.A,b);let f=v.A&&v.A.locals?v.A.locals:void 0;o.d(e,{},{default:f})},14(r){var e=[];function o(r){for(var o=-1,t=0;t<e.length;t++)if(e[t].identifier===r){o=t;break}return o}function t(r,t){for(var i={},a=[],n=0;n<r.length;n++){var d=r[n],p=t.base?d[0]+t.base:d[0],l=i[p]||0,s="".concat(p," ").concat(l);i[p]=l+1;var h=o(s),c={css:d[1],media:d[2],sourceMap:d[3],supports:d[4],layer:d[5]};if(-1!==h)e[h].references++,e[h].updater(c);else{var x=function(r,e){var o=e.domAPI(e);return o.update(r),function(e){e?(e.css!==r.css||e.media!==r.media||e.sourceMap!==r.sourceMap||e.supports!==r.supports||e.layer!==r.layer)&&o.update(r=e):o.remove()}}(c,t);t.byIndex=n,e.splice(n,0,{identifier:s,updater:x,references:1})}a.push(s)}return a}r.exports=function(r,i){var a=t(r=r||[],i=i||{});return function(r){r=r||[];for(var n=0;n<a.length;n++){var d=o(a[n]);e[d].references--}for(var p=t(r,i),l=0;l<a.length;l++){var s=o(a[l]);0===e[s].references&&(e[s].updater(),e.splice(s,1))}a=p}}},16(r){var e={};r.exports=function(r,o){var t=function(r){if(void 0===e[r]){var o=document.querySelector(r);if(window.HTMLIFrameElement&&o instanceof window.HTMLIFrameElement)try{o=o.contentDocument.head}catch(r){o=null}e[r]=o}return e[r]}(r);if(!t)throw Error("Couldn't find a style target. This probably means that the value for the 'insert' parameter is invalid.");t.appendChild(o)}},18(r){r.exports=function(r){var e=document.createElement("style");return r.setAttributes(e,r.attributes),r.insert(e,r.options),e}},17(r,e,o){r.exports=function(r){var e=o.nc;e&&r.setAttribute("nonce",e)}},15(r){r.exports=function(r){if("u"<typeof document)return{update:function(){},remove:function(){}};var e=r.insertStyleElement(r);return{update:function(o){var t,i,a;t="",o.supports&&(t+="@supports (".concat(o.supports,") {")),o.media&&(t+="@media ".concat(o.media," {")),(i=void 0!==o.layer)&&(t+="@layer".concat(o.layer.length>0?" ".concat(o.layer):""," {")),t+=o.css,i&&(t+="}"),o.media&&(t+="}"),o.supports&&(t+="}"),(a=o.sourceMap)&&"u">typeof btoa&&(t+="\n/*# sourceMappingURL=data:application/json;base64,".concat(btoa(unescape(encodeURIComponent(JSON.stringify(a))))," */")),r.styleTagTransform(t,e,r.options)},remove:function(){var r;null===(r=e).parentNode||r.parentNode.removeChild(r)}}}},19(r){r.exports=function(r,e){if(e.styleSheet)e.styleSheet.cssText=r;else{for(;e.firstChild;)e.removeChild(e.firstChild);e.appendChild(document.createTextNode(r))}}}}]);