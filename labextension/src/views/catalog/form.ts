// The form of an action: fields to type into, and what was typed, as text.
//
// Invariants: nothing is read here. What is typed goes to the kernel as it stands, so that a number keeps its digits;
// there it is read, and what is wrong comes back to its field. An answer takes the focus from nobody who types on.
import type { ActionForm, ArgumentFault, FormField } from "../../protocol";
import { focusedNear, h, unique, visible } from "../dom/h";

export interface FormView {
  element: HTMLElement;
  /** Field name → text, without the empty ones; null when the browser itself cannot read a field. */
  readValues(): Record<string, string> | null;
  /** Marks the fields that faults belong to. The first gets the focus, unless the person has gone on meanwhile. */
  showFaults(faults: readonly ArgumentFault[]): void;
}

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

export function drawForm(form: ActionForm): FormView {
  const others = { name: "", kind: "json", type: "JSON object", description: "Arguments without a field." };
  const fields = [...form.fields, ...(form.others ? [others as FormField] : [])].map(drawField);
  let focusAtReading: Element | null = null; // where the focus was when the fields were read, while nobody types on
  const showFaults = (faults: readonly ArgumentFault[]): void => {
    let first: Control | undefined;
    for (const { name, control, faultLine: wrong } of fields) {
      const path = name && `/${name.replace(/~/g, "~0").replace(/\//g, "~1")}`;
      const found = faults.filter((each) => each.path === path || (path && each.path.startsWith(`${path}/`)));
      wrong.textContent = visible(found.map((each) => each.message).join("; "));
      wrong.hidden = !found.length;
      control.setAttribute("aria-invalid", String(found.length > 0));
      if (found.length) first ??= control;
    }
    if (focusAtReading && focusedNear(element) === focusAtReading) first?.focus();
  };
  const element = h(
    "div.r-fields",
    { oninput: () => (focusAtReading = null) },
    fields.length ? fields.map((each) => each.element) : h("p.r-quiet", {}, "It takes no arguments."),
  );
  return {
    element,
    readValues() {
      focusAtReading = focusedNear(element);
      const bad = fields.filter((each) => each.control.validity.badInput);
      showFaults(bad.map((each) => ({ path: `/${each.name}`, message: "is no number" })));
      const given = fields.map((each) => [each.name, each.control.value] as const);
      return bad.length ? null : Object.fromEntries(given.filter(([, text]) => text));
    },
    showFaults,
  };
}

function drawField(field: FormField): {
  name: string;
  control: Control;
  faultLine: HTMLElement;
  element: HTMLElement;
} {
  const id = unique("field");
  const control = draw(field);
  const faultLine = h("p.r-wrong", { id: `${id}w`, hidden: true });
  control.id = id;
  control.setAttribute("aria-describedby", `${id}d ${id}w`);
  if (field.required) control.setAttribute("aria-required", "true");
  return {
    name: field.name,
    control,
    faultLine,
    element: h(
      "div.r-field",
      {},
      h(
        "label",
        { for: id },
        h("code", {}, visible(field.name || "others")),
        field.required && " *",
        h("span.r-more", {}, ` ${visible(field.type)}${field.kind === "list" ? ", one a line" : ""}`),
      ),
      control,
      h("p.r-more", { id: `${id}d` }, visible(field.description)),
      faultLine,
    ),
  };
}

const ROWS: Partial<Record<FormField["kind"], number>> = { lines: 4, list: 3, json: 2 };

function draw({ kind, placeholder, choices, required, least, most }: FormField): Control {
  const hint = visible(placeholder);
  if (kind === "boolean" || kind === "choice")
    return h(
      "select",
      {},
      h("option", { value: "" }, hint ? `default: ${hint}` : required ? "choose…" : "–"),
      kind === "choice"
        ? choices.map((each) => h("option", { value: each.json_text }, visible(each.text)))
        : ["true", "false"].map((each) => h("option", {}, each)),
    );
  const plain = { spellcheck: "false", autocomplete: "off", placeholder: hint };
  const rows = ROWS[kind];
  if (rows) return h("textarea", { ...plain, rows, placeholder: hint || (kind === "json" && "JSON") });
  if (kind === "reference") return h("input", { ...plain, placeholder: "@variable" });
  if (kind === "text") return h("input", plain);
  const step = kind === "integer" ? 1 : "any";
  return h("input", { ...plain, type: "number", step, min: least || null, max: most || null });
}
