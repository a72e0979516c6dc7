import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { draftArchive } from '../../adapters/archive-file.js';
import { nextTurn } from '../../adapters/pace.js';
import { systemClock } from '../../adapters/system-clock.js';
import { archiveLedger, checkArchivable, type Archived } from '../../runtime/evidence/archive.js';
import type { Holding } from '../../runtime/evidence/archive-boundary.js';
import { openHome } from '../../runtime/home.js';
import { readLedgerSigner } from '../../runtime/ledger-key.js';
import { RunRecordWriter } from '../../runtime/run-records.js';
import { quoted, wrong } from '../arguments.js';
import type { Args, Command } from '../command.js';
import { tamperedIsOne } from '../exit-code.js';
import { homeOf } from '../folders.js';
import { usage, type Io } from '../io.js';
import { counted, escaped, jsonLine } from '../terminal.js';

/** `turnpike ledger archive`: the beginning of a ledger, moved to a file that proves what it was. */
export const ledgerArchive: Command = {
  name: 'ledger archive',
  summary: 'Move the beginning of the ledger to a file, signed; what is left goes on from it',
  operands: { usage: 'FILE', min: 1, max: 1 },
  options: [{ name: 'before', value: 'SIZE', help: 'archive no more than so many entries (default: all signed ones)' }],
  notes: [
    'Archived are whole run trees that have ended: the first one that lives keeps everything after it. FILE is checked',
    'by `ledger verify FILE --key KEY` alone, and with the ledger by `ledger verify --archive FILE`. Keep it: of what is in',
    'it the ledger keeps ids and run records. A case with archived trees can be neither exported nor promoted from.',
    'No other process may have the home.',
  ],
  async run(args, io) {
    const path = resolve(io.cwd, args.operands[0] ?? '');
    const before = beforeOf(args);
    return tamperedIsOne(io, async () => {
      const ledger = homeOf(args, io).ledger;
      const bytes_before = sizeOf(ledger);
      const archived = await archive(path, before, args, io);
      const sizes = { bytes_before, bytes_after: sizeOf(ledger) };
      await io.stdout.write(args.flag('json') ? jsonLine({ ...archived, ...sizes }) : textOf(archived, path, sizes));
      return 0;
    });
  },
};

async function archive(path: string, before: number | null, args: Args, io: Io): Promise<Archived> {
  const home = homeOf(args, io);
  const { store, anchor, signHeads } = openHome(home, { readOnly: false });
  try {
    const epoch = await store.acquire();
    await checkArchivable({ store, anchor });
    await signHeads?.();
    const signer = readLedgerSigner(home.ledgerKey);
    if (signer === null) throw usage('this home has no key that could sign: open it once for writing');
    await new RunRecordWriter({ store, clock: systemClock(), log: io.log, defer: nextTurn }).finish();
    return await archiveLedger({ store, epoch, anchor, signer }, before, () => draftArchive(path));
  } finally {
    await anchor.close();
    await store.close();
  }
}

function beforeOf(args: Args): number | null {
  const text = args.text('before');
  if (text === undefined) return null;
  if (!/^(?:0|[1-9]\d{0,14})$/u.test(text))
    throw wrong(ledgerArchive, `--before: ${quoted(text)} is no number of entries`);
  return Number(text);
}

/** Nothing where there is no file: then there is no home, and that is said. */
const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

function textOf(
  { from, to, trees, sha256, held, tidied }: Archived,
  path: string,
  { bytes_before, bytes_after }: { readonly bytes_before: number; readonly bytes_after: number },
): string {
  const lines =
    sha256 === null
      ? ['nothing to archive']
      : [
          `archived entries ${from} to ${to - 1}, ${counted(trees, 'run tree')}, in ${path}`,
          `sha256 ${sha256}`,
          `the ledger has ${bytes_after} bytes now, and had ${bytes_before}`,
        ];
  if (held !== null) lines.push(heldLine(held));
  if (!tidied) lines.push('room in the ledger could not be given back now: the next archiving tries again');
  return lines.map((line) => `${escaped(line)}\n`).join('');
}

const WHY: Readonly<Record<Holding['why'], string>> = {
  lives: 'has not ended',
  'goes on': 'goes on after that',
  unrecorded: 'has no run records yet',
  'unknown outcome': 'has an unknown outcome that is not settled (`turnpike runs resolve`)',
};

const heldLine = ({ tree_id, first, why }: Holding): string =>
  `held back by ${tree_id}, which begins at entry ${first} and ${WHY[why]}`;
