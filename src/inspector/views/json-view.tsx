// A JSON value as lines. What an agent said in it is hatched; names and words of the contract are not.

import { Untrusted, Visible } from './text.js';
import { jsonLines, LINES_MAX, type JsonLine } from '../text/json-lines.js';
import { beginning, SHOWN_CHARS } from '../text/untrusted.js';
import { useState } from 'preact/hooks';

interface JsonProps {
  readonly value: unknown;
  /** Written by the platform: only what it quotes of others is theirs. */
  readonly trusted?: boolean;
  /** A response: its form is the platform's, and in it stands what the agent is told of its own. */
  readonly response?: boolean;
  readonly whose?: string;
}

export function JsonView({ value, trusted = false, response = false, whose = 'agent' }: JsonProps) {
  const isTheirs = ({ path, value: text }: JsonLine): boolean => {
    if (trusted) return QUOTED.test(path);
    return response ? !OF_RESPONSE.test(path) : !(OF_PAYLOAD.test(path) && WORD.test(text ?? ''));
  };
  const [most, setMost] = useState(LINES_MAX / 8);
  const { lines, cut } = jsonLines(value, most);
  return (
    <div class="json">
      {lines.map((line, at) => (
        <Line line={line} theirs={isTheirs(line)} whose={whose} key={at} />
      ))}
      {cut && (
        <button type="button" class="link" onClick={() => setMost(most * 4)}>
          more lines
        </button>
      )}
    </div>
  );
}

/** Members that have a fixed form; of a payload only where they have it. */
const OF_RESPONSE = /^(?:proposal_id|action|outcome|decision|error(?:\.error_code|\.message)?)$/;
const OF_PAYLOAD = /^(?:schema_version|id|action)$/;
const WORD = /^[A-Za-z0-9_.-]{1,64}$/;
/** Of an entry those that repeat what somebody said. */
const QUOTED = /(?:^|\.)(?:args_summary|args|note|notes|record|title)(?:\.(?!.*\bsha256$)|$)/;

function Line({
  line: { depth, name, value, kind },
  theirs,
  whose,
}: {
  readonly line: JsonLine;
  readonly theirs: boolean;
  readonly whose: string;
}) {
  return (
    <div class="json-line" style={{ paddingInlineStart: `${depth * 14}px` }}>
      {name !== null && (
        <span class="name">
          <Visible text={beginning(name, 200)} />:{' '}
        </span>
      )}
      {value !== null && kind === 'text' && theirs && <Untrusted text={value} whose={whose} />}
      {value !== null && (kind !== 'text' || !theirs) && (
        <span class={`value ${kind}`}>
          <Visible text={beginning(value, SHOWN_CHARS)} />
        </span>
      )}
    </div>
  );
}
