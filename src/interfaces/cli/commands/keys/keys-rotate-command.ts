import { commandUsageError } from '../../arguments.js';
import type { CliCommand, CommandArguments } from '../../command.js';
import { withHomeAccess } from '../../home-access.js';
import type { Io } from '../../io.js';
import { NO_OPERANDS } from '../../command.js';
import { OPERATOR_OPTIONS, parseOperator, parsePerson } from '../../options/person-options.js';
import { progressFor } from '../../progress-bar.js';
import { escapeText, jsonLine } from '../../text/terminal.js';
import type { Turnpike } from '../../../../host/turnpike.js';
import { caseRotationText } from './case-rotation-text.js';

/** `turnpike keys rotate`: replaces keys (decision 0022). */
export const keysRotate: CliCommand = {
  name: 'keys rotate',
  access: 'write',
  summary: 'Replace the key that signs the ledger, or the keys that encrypt the contents of cases',
  operands: NO_OPERANDS,
  options: [
    { name: 'signing', help: 'the key that signs checkpoints, bundles and erasures' },
    { name: 'case', value: 'ID', help: 'the key that encrypts the contents of this case' },
    { name: 'cases', help: 'the keys that encrypt the contents of all cases' },
    ...OPERATOR_OPTIONS.map((option) =>
      option.name === 'role' ? { ...option, required: true as const, help: 'your role' } : option,
    ),
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
    const kinds = [args.flag('signing'), args.text('case') !== undefined, args.flag('cases')].filter(Boolean);
    if (kinds.length !== 1) {
      throw commandUsageError(keysRotate, 'name the keys to replace: --signing, --case ID or --cases');
    }
    return args.flag('signing') ? rotateSigning(args, io) : rotateCases(args, io);
  },
};

async function rotateSigning(args: CommandArguments, io: Io): Promise<0> {
  const by = { ...parseOperator(keysRotate, args), ...parsePerson(keysRotate, args) };
  const rotation = await withLocalHome(args, io, (turnpike) => turnpike.rotateLedgerKey(by));
  const { number, head, old_key, new_key } = rotation;
  const [old, next] = [old_key, new_key].map((key) => key.split('+').slice(0, 2).join('+'));
  const lines = [
    `rotation ${number} at ${head.size} entries: ${next ?? ''} replaces ${old ?? ''}`,
    `new key: ${new_key}`,
  ];
  const text = lines.map((line) => `${escapeText(line)}\n`).join('');
  await io.stdout.write(args.flag('json') ? jsonLine(rotation) : text);
  return 0;
}

async function rotateCases(args: CommandArguments, io: Io): Promise<0> {
  const operator = { ...parseOperator(keysRotate, args), ...parsePerson(keysRotate, args) };
  const by = { ...operator, progress: progressFor(args, io) };
  const rotate = (turnpike: Turnpike) => turnpike.rotateCaseKeys({ ...by, case: args.text('case') ?? null });
  await io.stdout.write(caseRotationText(await withLocalHome(args, io, rotate), args.flag('json')));
  return 0;
}

const withLocalHome = <T>(args: CommandArguments, io: Io, work: (turnpike: Turnpike) => Promise<T>): Promise<T> =>
  withHomeAccess(
    args,
    io,
    ({ localTurnpike }) => {
      if (localTurnpike === null) throw commandUsageError(keysRotate, 'another process has the home directory open');
      return work(localTurnpike);
    },
    { localOnly: true, alone: args.flag('signing') },
  );
