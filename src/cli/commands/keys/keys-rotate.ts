import { commandUsageError } from '../../arguments.js';
import type { CliCommand } from '../../command.js';
import { withHomeAccess } from '../../home-access.js';
import { NO_OPERANDS } from '../../command.js';
import { PERSON_OPTIONS, parsePerson } from '../../options/person-options.js';
import { escapeText, jsonLine } from '../../text/terminal.js';

/** `turnpike keys rotate`: replaces a key (decision 0058). */
export const keysRotate: CliCommand = {
  name: 'keys rotate',
  access: 'write',
  summary: 'Replace the key that signs the ledger; older signatures stay valid for older entries',
  operands: NO_OPERANDS,
  options: [{ name: 'signing', help: 'the key that signs checkpoints, bundles and erasures' }, ...PERSON_OPTIONS],
  notes: [
    'The old key signs the new one, the new one signs the old one, and an entry of the ledger records it. Then the old',
    'private key is destroyed. A verifier that knows either key follows the history to the other. An interrupted rotation',
    'has happened or not; the next opening finishes it. No other process may have the home directory open. Give the new',
    'key (keys/ledger.vkey) to everyone who verifies, above all if the old one may be known to others.',
  ],
  async run(args, io) {
    if (!args.flag('signing')) throw commandUsageError(keysRotate, 'name the key to replace: --signing');
    const by = parsePerson(keysRotate, args);
    const rotation = await withHomeAccess(
      args,
      io,
      ({ localTurnpike }) => {
        if (localTurnpike === null) throw commandUsageError(keysRotate, 'another process has the home directory open');
        return localTurnpike.rotateLedgerKey(by);
      },
      { localOnly: true },
    );
    const { number, head, old_key, new_key } = rotation;
    const [old, next] = [old_key, new_key].map((key) => key.split('+').slice(0, 2).join('+'));
    const lines = [
      `rotation ${number} at ${head.size} entries: ${next ?? ''} replaces ${old ?? ''}`,
      `new key: ${new_key}`,
    ];
    await io.stdout.write(
      args.flag('json') ? jsonLine(rotation) : lines.map((line) => `${escapeText(line)}\n`).join(''),
    );
    return 0;
  },
};
