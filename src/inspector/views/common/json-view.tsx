// A JSON value as lines. Text of an agent is hatched; names and terms of the contract are not.

import { isDrawable, UntrustedText, VisibleText } from './text.js';
import { isQuoted, toJsonLines, LINES_MAX, type JsonLine } from '../../text/json-lines.js';
import { startOfText, SHOWN_CHARS } from '../../text/untrusted.js';
import { useEffect, useState } from 'preact/hooks';

interface JsonProps {
  readonly value: unknown;
  /** Written by the platform: only its quotations are foreign text. */
  readonly trusted?: boolean;
  /** A response: the platform defines its form, and its result may contain the agent's own text. */
  readonly response?: boolean;
  readonly whose?: string;
  /** Called once everything has been shown, so that nothing remains that the reader could not expand. */
  readonly onWhole?: () => void;
}

/** For values that must be shown completely: deeper than any accepted value. */
const DEPTH_WHOLE = 128;

export function JsonView({ value, trusted = false, response = false, whose = 'agent', onWhole }: JsonProps) {
  const isUntrusted = ({ path, value: text }: JsonLine): boolean => {
    if (trusted) return isQuoted({ path, value: text });
    return response ? !RESPONSE_MEMBERS.test(path) : !(PAYLOAD_MEMBERS.test(path) && WORD.test(text ?? ''));
  };
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
        <JsonViewLine
          line={line}
          theirs={isUntrusted(line)}
          whose={whose}
          {...(onWhole === undefined ? {} : { open })}
          key={at}
        />
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

/** Members with a fixed form; in a payload, only if they have that form. */
const RESPONSE_MEMBERS = /^(?:proposal_id|action|outcome|decision|error(?:\.error_code|\.message)?)$/;
const PAYLOAD_MEMBERS = /^(?:schema_version|id|action)$/;
const WORD = /^[A-Za-z0-9_.-]{1,64}$/;

function JsonViewLine({
  line: { depth, name, value, kind },
  theirs,
  whose,
  open,
}: {
  readonly line: JsonLine;
  readonly theirs: boolean;
  readonly whose: string;
  readonly open?: (text: string) => void;
}) {
  const opening = open === undefined ? {} : { onAll: open };
  return (
    <div class="json-line" style={{ paddingInlineStart: `${depth * 14}px` }}>
      {name !== null && (
        <span class="name">
          {open !== undefined && name.length > 200 ? (
            <UntrustedText text={name} whose={whose} {...opening} />
          ) : (
            <VisibleText text={startOfText(name, 200)} />
          )}
          :{' '}
        </span>
      )}
      {value !== null && kind === 'text' && theirs && <UntrustedText text={value} whose={whose} {...opening} />}
      {value !== null && (kind !== 'text' || !theirs) && (
        <span class={`value ${kind}`}>
          <VisibleText text={startOfText(value, SHOWN_CHARS)} />
        </span>
      )}
    </div>
  );
}
