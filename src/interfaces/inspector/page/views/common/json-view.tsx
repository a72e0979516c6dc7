// A JSON value as lines. Text of others is hatched and says whose it is; names and terms of the contract are not.

import { isDrawable, UntrustedText, VisibleText } from './text.js';
import { toJsonLines, LINES_MAX, type JsonLine } from '../../text/json-lines.js';
import type { LineAuthor } from '../../text/text-authors.js';
import { startOfText, SHOWN_CHARS } from '../../text/untrusted.js';
import { useEffect, useState } from 'preact/hooks';

interface JsonProps {
  readonly value: unknown;
  readonly author: LineAuthor;
  /** Called once everything has been shown, so that nothing remains that the reader could not expand. */
  readonly onWhole?: () => void;
}

/** For values that must be shown completely: deeper than any accepted value. */
const DEPTH_WHOLE = 128;

export function JsonView({ value, author, onWhole }: JsonProps) {
  const [most, setMost] = useState(LINES_MAX / 8);
  const { lines, cut } = toJsonLines(value, most, onWhole === undefined ? undefined : DEPTH_WHOLE);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const open = (text: string): void => setOpened((before) => new Set(before).add(text));
  const isWhole = !cut && lines.every(({ name, value: text }) => isOpen(name, opened) && isOpen(text, opened));
  useEffect(() => {
    if (isWhole) onWhole?.();
  }, [isWhole]);
  return (
    <div class="json">
      {lines.map((line, at) => (
        <JsonViewLine line={line} whose={author(line)} {...(onWhole === undefined ? {} : { open })} key={at} />
      ))}
      {cut && (
        <button type="button" class="link" onClick={() => setMost(most * 4)}>
          {onWhole === undefined ? 'more lines' : `more lines than these ${lines.length}`}
        </button>
      )}
    </div>
  );
}

/** Whether a text is short enough to be shown, or was expanded completely. */
const isOpen = (text: string | null, opened: ReadonlySet<string>): boolean =>
  text === null || opened.has(text) || (text.length <= SHOWN_CHARS && isDrawable(text));

function JsonViewLine({
  line: { depth, name, value, kind },
  whose,
  open,
}: {
  readonly line: JsonLine;
  readonly whose: string | null;
  readonly open?: (text: string) => void;
}) {
  const opening = open === undefined ? {} : { onAll: open };
  return (
    <div class="json-line" style={{ paddingInlineStart: `${depth * 14}px` }}>
      {name !== null && (
        <span class="name">
          {open !== undefined && name.length > 200 ? (
            <UntrustedText text={name} whose={whose ?? 'requester'} {...opening} />
          ) : (
            <VisibleText text={startOfText(name, 200)} />
          )}
          :{' '}
        </span>
      )}
      {value !== null && kind === 'text' && whose !== null && <UntrustedText text={value} whose={whose} {...opening} />}
      {value !== null && (kind !== 'text' || whose === null) && (
        <span class={`value ${kind}`}>
          <VisibleText text={startOfText(value, SHOWN_CHARS)} />
        </span>
      )}
    </div>
  );
}
