import type { CaseKeyRotations, RotatedCaseKey } from '../../../../home/keys/rotate-case-keys.js';
import { countText, escapeText, jsonLine } from '../../text/terminal.js';

/** What `turnpike keys rotate --case` prints: a line for each case, and the sum. With `--json` a line for each case. */
export function caseRotationText({ rotations, resealed }: CaseKeyRotations, isJson: boolean): string {
  if (isJson) return rotations.map((rotation) => jsonLine(jsonOf(rotation))).join('');
  const lines = rotations.map(lineOf);
  if (lines.length === 0) return 'no case has a key\n';
  const sum = `${countText(resealed, 'content')} encrypted again; a backup from before still has the old keys, if it has keys`;
  return [...lines, sum].map((line) => `${escapeText(line)}\n`).join('');
}

const jsonOf = ({ key_no, ...rotation }: RotatedCaseKey) => ({
  purpose: 'case',
  case_id: rotation.case_id,
  old_key: key_no,
  new_key: key_no + 1,
  contents: rotation.contents,
  at: rotation.at,
  actor: rotation.by,
  role: rotation.role,
  resumed: rotation.resumed,
});

function lineOf({ case_id, key_no, contents, resumed, at, by }: RotatedCaseKey): string {
  const line = `${case_id}: key ${key_no + 1} replaces key ${key_no} (${countText(contents, 'content')})`;
  return resumed ? `${line}; finished what ${by} began at ${at}` : line;
}
