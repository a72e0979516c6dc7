import { nameInLedger } from '../../../core/contract/entry-name.js';
import { listKeys, type KeyFacts } from '../../../home/keys/list-keys.js';
import type { CaseKeyRotations, RotatedCaseKey } from '../../../home/keys/rotate-case-keys.js';
import type { Operator } from '../../../runtime/operator-acts.js';
import { defineCommand, NO_OPERANDS, type CliCommand, type CommandArguments } from '../command.js';
import { withLocalTurnpike } from '../home-access.js';
import type { Io } from '../io.js';
import { homeOf } from '../options/folders.js';
import { OPERATOR_OPTIONS, operatorOf } from '../options/person-options.js';
import { progressFor } from '../progress-bar.js';
import { countText, createPainter, escapeLines, escapeText, jsonLine, table } from '../text/terminal.js';

/** `turnpike keys list`: the keys of a home directory, without their secrets. */
export const keysList: CliCommand = {
  name: 'keys list',
  access: 'read',
  summary: 'List the keys: what each does, its id, since when it is used, and whether it is retired',
  operands: NO_OPERANDS,
  options: [],
  notes: [
    'Shows no secret. The id of a ledger key is what auditors compare; --json adds the entries that it may vouch for. Of',
    'a retired key only the public half is kept, in keys/key-history.list, which is no secret: give it to auditors who',
    'have an older key.',
  ],
  async run(args, io) {
    const keys = listKeys(homeOf(args, io));
    if (args.values.json) {
      for (const key of keys) await io.stdout.write(jsonLine(key));
      return 0;
    }
    if (keys.length > 0) await io.stdout.write(table(keys.map(rowOf), createPainter(io.colours)));
    return 0;
  },
};

const rowOf = ({ purpose, id, state, since, from, to }: KeyFacts) => [
  { text: purpose },
  { text: escapeText(id) },
  { text: state },
  { text: since === null ? '' : `since ${since}` },
  {
    text:
      from === null
        ? ''
        : to === null
          ? `from entry ${nameInLedger(from)} on`
          : `entries ${nameInLedger(from)} to ${nameInLedger(to - 1)}`,
  },
];

const [ACTOR, ROLE, ...OTHERS] = OPERATOR_OPTIONS;

/** `turnpike keys rotate`: replaces keys (decision 0022). */
export const keysRotate: CliCommand = defineCommand({
  name: 'keys rotate',
  access: 'write',
  summary: 'Replace the key that signs the ledger, or the keys that encrypt the contents of cases',
  operands: NO_OPERANDS,
  options: [
    { name: 'signing', help: 'the key that signs checkpoints, bundles and erasures' },
    { name: 'case', value: 'ID', help: 'the key that encrypts the contents of this case' },
    { name: 'cases', help: 'the keys that encrypt the contents of all cases' },
    ACTOR,
    { ...ROLE, required: true, help: 'your role' },
    ...OTHERS,
  ],
  notes: [
    'With --signing, the old key signs the new one, the new one signs the old one, and an entry of the ledger records it.',
    'Then the old private key is destroyed. A verifier that knows either key follows the history to the other. An',
    'interrupted rotation has happened or not; the next opening finishes it. Give the new key (keys/ledger.vkey) to',
    'everyone who verifies, above all if the old one may be known to others.',
    'With --case or --cases, every content of the case is encrypted with a new key, an entry of the ledger records it, and',
    'the old key is destroyed. Run trees of the case may wait for approval meanwhile. If the command is interrupted, all',
    'content can still be read, and the same command finishes it. Then make a new backup: with an older one that has keys,',
    'the old key can still be read.',
    'No other process may have the home directory open. With --signing, no worker may have a ledger in PostgreSQL open.',
    'Policy decides first: conditions of the action "key_rotation", an approval for it, and the lanes that list the tool',
    'ledger.rotate_keys.',
  ],
  run: (args, io) => {
    const { signing, case: case_id, cases } = args.values;
    if ([signing, case_id !== undefined, cases].filter(Boolean).length !== 1) {
      throw args.usageError('name the keys to replace: --signing, --case ID or --cases');
    }
    const operator = { ...operatorOf(args.values), role: args.values.role };
    return signing ? rotateSigning(operator, args, io) : rotateCases(operator, case_id ?? null, args, io);
  },
});

type Rotator = Operator & { readonly role: string };

async function rotateSigning(by: Rotator, args: CommandArguments, io: Io): Promise<0> {
  const rotation = await withLocalTurnpike(args, io, (turnpike) => turnpike.rotateLedgerKey(by), { alone: true });
  const { number, head, old_key, new_key } = rotation;
  const [old, next] = [old_key, new_key].map((key) => key.split('+').slice(0, 2).join('+'));
  const lines = [
    `rotation ${number} at ${head.size} entries: ${next ?? ''} replaces ${old ?? ''}`,
    `new key: ${new_key}`,
  ];
  await io.stdout.write(args.values.json ? jsonLine(rotation) : escapeLines(lines));
  return 0;
}

/** @param case_id null: all cases */
async function rotateCases(operator: Rotator, case_id: string | null, args: CommandArguments, io: Io): Promise<0> {
  const rotation = { ...operator, progress: progressFor(args, io), case: case_id };
  const rotations = await withLocalTurnpike(args, io, (turnpike) => turnpike.rotateCaseKeys(rotation));
  await io.stdout.write(caseRotationText(rotations, args.values.json));
  return 0;
}

/** What `turnpike keys rotate --case` prints: a line for each case, and the sum. With `--json` a line for each case. */
function caseRotationText({ rotations, resealed }: CaseKeyRotations, isJson: boolean): string {
  if (isJson) return rotations.map((rotation) => jsonLine(rotationJson(rotation))).join('');
  const lines = rotations.map(rotationLine);
  if (lines.length === 0) return 'no case has a key\n';
  const sum = `${countText(resealed, 'content')} encrypted again; a backup from before still has the old keys, if it has keys`;
  return escapeLines([...lines, sum]);
}

const rotationJson = ({ key_no, ...rotation }: RotatedCaseKey) => ({
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

function rotationLine({ case_id, key_no, contents, resumed, at, by }: RotatedCaseKey): string {
  const line = `${case_id}: key ${key_no + 1} replaces key ${key_no} (${countText(contents, 'content')})`;
  return resumed ? `${line}; finished what ${by} began at ${at}` : line;
}
