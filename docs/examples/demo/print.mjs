// The output of the demonstration. Proposals come from an agent, so their text passes `visible` before it is printed.

const COLOURS = { SUCCESS: 32, DENIED: 31, VALIDATION_ERROR: 33, EXECUTION_ERROR: 35, dim: 2, bold: 1 };
const COLOURED = process.stdout.isTTY === true && (process.env['NO_COLOR'] ?? '') === '';
// Controls, bidirectional and invisible characters, which could mislead a terminal or a reader.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

export const say = (line = '') => void process.stdout.write(`${line}\n`);

export const paint = (text, name) => (COLOURED ? `\u001b[${COLOURS[name]}m${text}\u001b[0m` : text);

/** Untrusted text as one line without terminal control characters, truncated to `width`. */
export function visible(text, width) {
  const line = String(text).replace(UNSAFE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return line.length > width ? `${line.slice(0, width - 1)}…` : line;
}

const column = (text, width) => visible(text, width).padEnd(width);
const COLUMNS = process.stdout.columns ?? 140;
/** The width of a line that remains after index, action and outcome: for subject and message. */
const LEFT = COLUMNS - 52;
const WHAT_WIDTH = Math.min(46, Math.max(20, LEFT - 24));
const TOLD_WIDTH = Math.max(12, LEFT - WHAT_WIDTH);

/** One step: index, action, subject, outcome, and the message if it was rejected or denied. */
export function stepLine(index, proposal, { action, outcome, error }) {
  const mark = proposal.note === undefined ? ' ' : paint('!', 'bold');
  const told = error === null ? '' : paint(visible(`${error.error_code}: ${error.message}`, TOLD_WIDTH), 'dim');
  const what = column(proposal.note ?? about(proposal.payload), WHAT_WIDTH);
  return `${String(index).padStart(4)} ${mark} ${column(action ?? '-', 25)} ${what} ${paint(outcome.padEnd(16), outcome)} ${told}`.trimEnd();
}

/** The subject of a well-formed proposal of the session: the end of a path, or the beginning of a thought. */
function about(payload) {
  const { action, args, reasoning } = JSON.parse(payload.toString('utf8'));
  if (action === 'THINK' || action === 'FINISH') return args.response ?? reasoning;
  const [from, to] = [args.path ?? args.source, args.destination];
  if (to === undefined) return from.length > WHAT_WIDTH ? `…${from.slice(1 - WHAT_WIDTH)}` : from;
  const name = (path) => path.slice(path.lastIndexOf('/') + 1);
  return `${name(from)} → ${name(to)}`;
}

/** Text of an agent, wrapped and indented. */
export function paragraph(text) {
  const lines = [''];
  for (const word of visible(text, 4_000).split(' ')) {
    if (lines.at(-1).length + word.length > 100) lines.push('');
    lines.push(`${lines.pop()} ${word}`.trimStart());
  }
  return lines.map((line) => `     ${line}`).join('\n');
}

/** A run tree; siblings that ended alike share one line with their number, and so do their children. */
export function treeLines(runs) {
  const [root] = runs;
  return [`${root.run_id}  ${root.run_kind}  ${ended(root)}`, ...childLines([root], runs, '')];
}

function childLines(parents, runs, indent) {
  const ids = new Set(parents.map(({ run_id }) => run_id));
  const groups = new Map();
  for (const run of runs.filter(({ parent_run_id }) => ids.has(parent_run_id))) {
    const key = `${run.run_kind} ${run.run_name ?? ''}`.trim() + `  ${ended(run)}`;
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  return [...groups].flatMap(([key, alike], index) => {
    const last = index === groups.size - 1;
    const name = alike.length === 1 ? `${alike[0].run_id.slice(alike[0].root_run_id.length)} ` : `${alike.length} × `;
    const rest = childLines(alike, runs, `${indent}${last ? '   ' : '│  '}`);
    return [`${indent}${last ? '└─ ' : '├─ '}${name}${key}`, ...rest];
  });
}

const ended = ({ status, outcome }) => (outcome === undefined || outcome === status ? status : visible(outcome, 80));

const OUTCOMES = ['SUCCESS', 'VALIDATION_ERROR', 'DENIED', 'EXECUTION_ERROR'];

/** The count of each outcome, one line per run. */
export function countLine(title, responses) {
  const counts = new Map();
  for (const { outcome } of responses) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  const told = OUTCOMES.filter((outcome) => counts.has(outcome)).map(
    (outcome) => `${paint(outcome, outcome)} ${counts.get(outcome)}`,
  );
  return `  ${title.padEnd(12)} ${String(responses.length).padStart(3)} steps   ${told.join('   ')}`;
}
