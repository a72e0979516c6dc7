// Content that came with an entry. A service records readings, so the page reads content only on request. Then it
// hashes the content and compares it with the hash that the entry names.

import { useEffect, useState } from 'preact/hooks';
import type { ArtifactInfo } from '../../../../../core/contract/inspection/inspection.js';
import { isReadingAllowed, useStore } from '../common/context.js';
import { JsonView } from '../common/json-view.js';
import { formatBytes as size, shortenHash, UntrustedText } from '../common/text.js';
import { useAnswer } from '../common/use-answer.js';
import { parseJson } from '../../text/json-lines.js';
import { authorOfContent, contentLines, type LineAuthor } from '../../text/text-authors.js';
import { hexDump, decodeUtf8 } from '../../text/untrusted.js';
import type { Store } from '../../store/store.js';
import { hex, browserSha256 } from '../../worker/compact-range.js';
import { hasContentHash } from '../../worker/ledger-proof.js';

interface ContentProps {
  readonly at: number;
  /** The text of the entry that the content came with. */
  readonly entry: string;
  readonly artifact: ArtifactInfo;
}

export const READING_NOTICE = 'Reading it is recorded in the ledger.';
/** Readings of these are not recorded: they reveal nothing about a case. */
const UNAUDITED_KINDS = ['policy', 'machines'];

export function ArtifactContent({ at, entry, artifact }: ContentProps) {
  const { kind, byte_size, sha256, withheld } = artifact;
  const [isRequested, setRequested] = useState(false);
  const store = useStore();
  // At the head, new content is not read automatically: each reading would cause the next one.
  const isUnrequested = isReadingAllowed.value && authorOfContent(kind) !== null && !store.isRecording;
  const shown = withheld === null && (isRequested || isUnrequested);
  return (
    <div class="content">
      <h3>
        {kind} <small>{size(byte_size)}</small> <code title={sha256}>{shortenHash(sha256)}</code>
      </h3>
      {withheld !== null && <WithheldNotice why={withheld} sha256={sha256} />}
      {withheld === null && !shown && (
        <p>
          <button type="button" onClick={() => showContent(store, setRequested)}>
            Show content
          </button>{' '}
          {store.info.value?.live === true && !UNAUDITED_KINDS.includes(kind) && <small>{READING_NOTICE}</small>}
        </p>
      )}
      {shown && <ContentBody at={at} entry={entry} artifact={artifact} />}
    </div>
  );
}

/** Reads the content and fixes the position, because the record of the reading comes after it. */
export function showContent(store: Store, setRequested: (is: boolean) => void): void {
  store.hold();
  isReadingAllowed.value = true;
  setRequested(true);
}

export function WithheldNotice({ why, sha256 }: { readonly why: 'erased' | 'lane'; readonly sha256: string }) {
  return (
    <p class="withheld">
      {why === 'lane' ? 'withheld by lane policy' : 'erased permanently'}
      <code>{sha256}</code>
    </p>
  );
}

function ContentBody({ at, entry, artifact: { sha256, kind } }: ContentProps) {
  const store = useStore();
  const answer = useAnswer(`${at}/${sha256}`, () => store.feed.artifact(at, sha256), 0);
  if (answer.is === 'asking') return <p class="quiet">reading…</p>;
  if (answer.is === 'failed') return <p class="h-failed">It could not be read: {answer.why}</p>;
  if (answer.value === null) return <p class="quiet">It is not available.</p>;
  return (
    <>
      <HashCheck bytes={answer.value} sha256={sha256} named={hasContentHash(entry, sha256)} />
      <ContentBytes bytes={answer.value} whose={authorOfContent(kind)} />
    </>
  );
}

interface HashedProps {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly sha256: string;
  /** Whether the entry names this hash: otherwise only the service vouches for the listed artifact. */
  readonly named: boolean;
}

/** Whether these bytes are the ones that the entry names. */
function HashCheck({ bytes, sha256, named }: HashedProps) {
  const isBroken = useStore().proof.phase.value === 'broken';
  const [own, setOwn] = useState<string | null>(null);
  useEffect(() => {
    browserSha256(bytes).then(
      (hash) => setOwn(hex(hash)),
      () => setOwn(''),
    );
  }, [bytes]);
  if (own === null) return null;
  if (own === '') return <p class="quiet">not hashed: needs https or loopback</p>;
  if (isBroken && named && own === sha256)
    return <p class="quiet">It has the hash that the entry names. Nothing of this ledger counts as verified.</p>;
  if (!named) return <p class="h-failed strong">✕ the entry does NOT name content with this hash</p>;
  return own === sha256 ? (
    <p class="h-completed strong">✓ hashed here: the entry names this content</p>
  ) : (
    <p class="h-failed strong">✕ these bytes are NOT what the entry names: they hash to {shortenHash(own)}</p>
  );
}

function ContentBytes({ bytes, whose }: { readonly bytes: Uint8Array; readonly whose: string | null }) {
  const text = decodeUtf8(bytes);
  if (text === null) {
    return (
      <>
        <p class="quiet">These bytes are not UTF-8. The first of them, in hex:</p>
        <pre class="hex">{hexDump(bytes)}</pre>
      </>
    );
  }
  return <JsonOrText text={text} whose={whose} author={contentLines(whose)} />;
}

interface JsonOrTextProps {
  readonly text: string;
  /** Whose text it is if it is not JSON. */
  readonly whose: string | null;
  readonly author: LineAuthor;
}

export function JsonOrText({ text, whose, author }: JsonOrTextProps) {
  const json = parseJson(text);
  return json === null ? (
    <UntrustedText text={text} whose={whose} block />
  ) : (
    <JsonView value={json.value} author={author} />
  );
}
