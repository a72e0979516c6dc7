// Content that an entry brought. Where a service gives it, reading it is recorded: so it is read when it is asked for,
// and then hashed here, to see that it is what the entry names.

import { useEffect, useState } from 'preact/hooks';
import type { ArtifactInfo } from '../../contract/inspection.js';
import { reading, useStore } from './context.js';
import { JsonView } from './json-view.js';
import { bytes as size, short, Untrusted } from './text.js';
import { useAnswer } from './use-answer.js';
import { asJson } from '../text/json-lines.js';
import { namesContent } from '../data/held.js';
import { hexDump, utf8 } from '../text/untrusted.js';
import type { Store } from '../store/store.js';
import { hex, subtle } from '../worker/merkle.js';

interface ContentProps {
  readonly at: number;
  /** The text of the entry that brought it. */
  readonly entry: string;
  readonly artifact: ArtifactInfo;
}

export const RECORDED = 'Reading it is recorded in the ledger.';
/** Of these nobody is told who has read them: they say nothing of a case. */
const UNTOLD = ['policy', 'machines'];
/** Kinds that the platform writes itself. */
const PLATFORM = ['policy', 'machines', 'taxonomy', 'spec'];

export function Content({ at, entry, artifact }: ContentProps) {
  const { kind, byte_size, sha256, withheld } = artifact;
  const [asked, setAsked] = useState(false);
  const store = useStore();
  // At the head what comes is not read because it comes: each reading would bring the next.
  const unasked = reading.value && !PLATFORM.includes(kind) && !store.isRecording;
  const shown = withheld === null && (asked || unasked);
  return (
    <div class="content">
      <h3>
        {kind} <small>{size(byte_size)}</small> <code title={sha256}>{short(sha256)}</code>
      </h3>
      {withheld !== null && <Withheld why={withheld} sha256={sha256} />}
      {withheld === null && !shown && (
        <p>
          <button type="button" onClick={() => show(store, setAsked)}>
            Show content
          </button>{' '}
          {store.info.value?.live === true && !UNTOLD.includes(kind) && <small>{RECORDED}</small>}
        </p>
      )}
      {shown && <Shown at={at} entry={entry} artifact={artifact} />}
    </div>
  );
}

/** Reads it, and stays at what is read: what is written down of that comes after it. */
export function show(store: Store, setAsked: (is: boolean) => void): void {
  store.hold();
  reading.value = true;
  setAsked(true);
}

export function Withheld({ why, sha256 }: { readonly why: 'erased' | 'lane'; readonly sha256: string }) {
  return (
    <p class="withheld">
      {why === 'lane' ? 'withheld by lane policy' : 'erased for good'}
      <code>{sha256}</code>
    </p>
  );
}

function Shown({ at, entry, artifact: { sha256, kind } }: ContentProps) {
  const store = useStore();
  const answer = useAnswer(`${at}/${sha256}`, () => store.feed.artifact(at, sha256), 0);
  if (answer.is === 'asking') return <p class="quiet">reading…</p>;
  if (answer.is === 'failed') return <p class="h-failed">It could not be read: {answer.why}</p>;
  if (answer.value === null) return <p class="quiet">It is not here.</p>;
  return (
    <>
      <Hashed bytes={answer.value} sha256={sha256} named={namesContent(entry, sha256)} />
      <Bytes bytes={answer.value} whose={whoseOf(kind)} />
    </>
  );
}

const whoseOf = (kind: string): string =>
  kind.startsWith('raw_payload') ? 'agent' : PLATFORM.includes(kind) ? kind : `${kind.replaceAll('_', ' ')}:`;

interface HashedProps {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly sha256: string;
  /** Whether the entry names this hash: what is told beside it is the word of the service alone. */
  readonly named: boolean;
}

/** Whether these bytes are the ones that the entry names. */
function Hashed({ bytes, sha256, named }: HashedProps) {
  const [own, setOwn] = useState<string | null>(null);
  useEffect(() => {
    subtle(bytes).then(
      (hash) => setOwn(hex(hash)),
      () => setOwn(''),
    );
  }, [bytes]);
  if (own === null) return null;
  if (own === '') return <p class="quiet">not hashed: needs https or loopback</p>;
  if (!named) return <p class="h-failed strong">✕ the entry does NOT name content with this hash</p>;
  return own === sha256 ? (
    <p class="h-completed strong">✓ hashed here: it is what the entry names</p>
  ) : (
    <p class="h-failed strong">✕ these bytes are NOT what the entry names: they hash to {short(own)}</p>
  );
}

export function Bytes({ bytes, whose }: { readonly bytes: Uint8Array; readonly whose: string }) {
  const text = utf8(bytes);
  if (text === null) {
    return (
      <>
        <p class="quiet">These bytes are no UTF-8. The first of them, in hex:</p>
        <pre class="hex">{hexDump(bytes)}</pre>
      </>
    );
  }
  const json = asJson(text);
  return json === null ? <Untrusted text={text} whose={whose} block /> : <JsonView value={json.value} whose={whose} />;
}
