import { nameInLedger } from '../../../../core/contract/entry-name.js';
import { listKeys, type KeyFacts } from '../../../../home/keys/list-keys.js';
import { NO_OPERANDS, type CliCommand } from '../../command.js';
import { homeOf } from '../../options/folders.js';
import { createPainter, escapeText, jsonLine, table } from '../../text/terminal.js';

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
    if (args.flag('json')) {
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
