// Untrusted texts, times, numbers and lists of facts, as all views show them.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { startOfText, splitParts, splitPieces, SHOWN_CHARS, type TextPiece } from '../../text/untrusted.js';

/** More pieces than this in one part are a flood of hidden characters, not a text. */
const PIECES_MAX = 1_500;

/** Text of only these characters can neither reorder nor hide anything. */
const HARMLESS = /^[\x20-\x7e]*$/;

/** A text whose hidden characters are named; never a link, never markup. */
export function VisibleText({ text }: { readonly text: string }) {
  return HARMLESS.test(text) ? <>{text}</> : <bdi>{drawPieces(splitPieces(text))}</bdi>;
}

function drawPieces(all: readonly TextPiece[]) {
  const shown: ComponentChildren[] = [];
  for (let place = 0; place < all.length && shown.length < PIECES_MAX; place += 1) {
    const piece = all[place];
    if (piece === undefined) break;
    if ('text' in piece) {
      shown.push(piece.text);
      continue;
    }
    let same = place;
    for (
      let next = all[same + 1];
      next !== undefined && 'mark' in next && next.mark === piece.mark;
      next = all[same + 1]
    )
      same += 1;
    const times = same - place + 1;
    shown.push(<span class="hidden-character">{times > 1 ? `${piece.mark} ×${times}` : piece.mark}</span>);
    place = same;
  }
  if (shown.length >= PIECES_MAX)
    shown.push(<span class="hidden-character">{`… ${all.length - PIECES_MAX} more pieces`}</span>);
  return shown;
}

/** Whether a part of a text can be shown completely: not if it is flooded with hidden characters. */
export const isDrawable = (part: string): boolean =>
  HARMLESS.test(part) || drawPieces(splitPieces(part)).length < PIECES_MAX;

interface UntrustedProps {
  readonly text: string;
  /** Whose text it is; null for the platform's own, which is not marked. */
  readonly whose: string | null;
  /** Inside a line, or as a block. */
  readonly block?: boolean;
  /** Called once the whole text is shown. */
  readonly onAll?: (text: string) => void;
}

/** Hatched and marked unless it is the platform's own; at most 2 kB until the reader requests all of it. */
export function UntrustedText({ text, whose, block = false, onAll }: UntrustedProps) {
  const [all, setAll] = useState(false);
  const long = text.length > SHOWN_CHARS;
  return (
    <span class={`${whose === null ? 'own-text' : 'untrusted'}${block ? ' block' : ''}`}>
      {all ? (
        <WholeText text={text} {...(onAll === undefined ? {} : { onAll })} />
      ) : (
        <bdi>{drawPieces(splitPieces(startOfText(text, SHOWN_CHARS)))}</bdi>
      )}
      {long && !all && (
        <button type="button" class="link" onClick={() => setAll(true)}>
          {`show all ${formatCount(text.length)} characters`}
        </button>
      )}
      {whose !== null && <span class="tag">{`${whose} text, untrusted`}</span>}
    </span>
  );
}

/** Adds the parts of a long text one after another, so that the page stays responsive. */
function WholeText({ text, onAll }: Pick<UntrustedProps, 'text' | 'onAll'>) {
  const all = splitParts(text);
  const [shown, setShown] = useState(1);
  useEffect(() => {
    if (shown >= all.length) {
      if (onAll !== undefined && all.every(isDrawable)) onAll(text);
      return;
    }
    const timer = setTimeout(() => setShown(shown + 1), 16);
    return () => clearTimeout(timer);
  }, [shown, all.length]);
  return (
    <>
      {all.slice(0, shown).map((part) => (
        <span class="part">
          <VisibleText text={part} />
        </span>
      ))}
    </>
  );
}

export type Fact = readonly [name: string, value: ComponentChildren];

/** Names and values, one pair a line. */
export const Facts = ({ facts, wide = false }: { readonly facts: readonly Fact[]; readonly wide?: boolean }) => (
  <dl class={wide ? 'facts wide' : 'facts'}>
    {facts.map(([name, value]) => (
      <>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </>
    ))}
  </dl>
);

interface CheckboxProps {
  readonly label: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
}

export const Checkbox = ({ label, checked, onChange }: CheckboxProps) => (
  <label>
    <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} /> {label}
  </label>
);

export const formatCount = (number: number): string => number.toLocaleString('en-US');

export function formatBytes(number: number): string {
  if (number < 1_000) return `${number} B`;
  return number < 1_000_000 ? `${(number / 1_000).toFixed(1)} kB` : `${(number / 1_000_000).toFixed(1)} MB`;
}

export const formatIsoTime = (time: number): string => (Number.isFinite(time) ? new Date(time).toISOString() : '');
/** 09:00:04.508 */
export const formatClock = (time: number): string => formatIsoTime(time).slice(11, 23);

/** Formats milliseconds readably. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60
    ? `${minutes} min ${Math.round((ms % 60_000) / 1_000)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export const shortenHash = (hash: string): string => hash.slice(0, 8);
