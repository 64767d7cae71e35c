// Says in the title of the browser's tab that a run waits for the person.
//
// Invariant: the title is the application's own again as soon as nothing waits, whatever it has become meanwhile.
const MARK = "❚❚ waiting for you · ";

const waiting = new Set<string>();
let observer: MutationObserver | null = null;

/** A question waits. Returns what takes it back; more than once does no harm. */
export function waitForPerson(question: string): () => void {
  waiting.add(question);
  update();
  return () => {
    waiting.delete(question);
    update();
  };
}

function update(): void {
  if (waiting.size && !observer) {
    observer = new MutationObserver(mark);
    observer.observe(document.head, { subtree: true, childList: true, characterData: true });
  } else if (!waiting.size && observer) {
    observer.disconnect();
    observer = null;
  }
  mark();
}

/** The application writes the title anew whenever another document is shown. */
function mark(): void {
  const plain = document.title.startsWith(MARK) ? document.title.slice(MARK.length) : document.title;
  const wanted = waiting.size ? MARK + plain : plain;
  if (document.title !== wanted) document.title = wanted;
}
