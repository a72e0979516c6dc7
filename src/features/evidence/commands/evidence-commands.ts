import { usageError } from '../../../core/errors.js';
import { createWriteStream, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { finished } from 'node:stream/promises';
import { once } from 'node:events';
import { withholdByLanes } from '../../../runtime/content/lane-withholding.js';
import { writeEvidence } from '../write-evidence.js';
import { readLedgerSigner } from '../../../home/ledger-key.js';
import { requireSignedHead } from '../../../runtime/ledger/ledger-proofs.js';
import {
  defineCommand,
  type CliCommand,
  type ExitCode,
  type CommandArguments,
  type CommandGroup,
} from '../../../interfaces/cli/command.js';
import { exitOneIfTampered } from '../../../interfaces/cli/exit-code.js';
import { homeOf, withLedger, type OpenLedger } from '../../../interfaces/cli/options/folders.js';
import { countText, jsonLine, escapeLines } from '../../../interfaces/cli/text/terminal.js';
import { nameInLedger } from '../../../core/contract/entry-name.js';
import { createArchiveDraft } from '../../../stores/ledger/archive-file.js';
import { scheduleNextTurn } from '../../../system/system-pace.js';
import { systemClock } from '../../../system/system-clock.js';
import {
  archiveLedger,
  checkArchivable,
  planArchive,
  type ArchiveResult,
  type LockedLedger,
} from '../archive-ledger.js';
import { OPERATOR_DEFAULTS, type Operator } from '../../../runtime/operator-acts.js';
import type { BoundaryBlocker } from '../archive-boundary.js';
import { readStoreHome } from '../../../home/store-home.js';
import { openHome } from '../../../home/home.js';
import { countReads } from '../../../runtime/ledger/count-reads.js';
import { RunRecordWriter } from '../../../runtime/ledger/run-record-writer.js';
import { integerType } from '../../../interfaces/cli/option-types.js';
import { withLocalTurnpike } from '../../../interfaces/cli/home-access.js';
import { OPERATOR_OPTIONS, operatorOf } from '../../../interfaces/cli/options/person-options.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';

/** `turnpike ledger export`: writes one file with all that a third party needs to verify the ledger. */
const ledgerExport: CliCommand = defineCommand({
  name: 'ledger export',
  access: 'read',
  summary: 'Write an evidence bundle: ledger, content, policies, machines, checkpoint and key in one verifiable file',
  operands: { usage: 'FILE', min: 1, max: 1 },
  options: [{ name: 'entries', help: 'write only the entries, one per line, unchanged and unsigned' }],
  notes: [
    '`ledger verify FILE --key KEY` and `replay FILE` verify FILE without any other data. FILE contains the entries',
    'from the first one that is not archived to the last checkpoint, and everything that agents and tools have',
    'written. Content that was erased, and content of lanes that withhold it (withholds_content), appears only as',
    'hashes. Protect FILE like the ledger.',
  ],
  async run(args, io) {
    const path = resolve(io.cwd, args.operands[0] ?? '');
    const { entries: entriesOnly, json } = args.values;
    const signer = readLedgerSigner(homeOf(args, io).ledgerKey);
    return exitOneIfTampered(io, () =>
      withLedger<ExitCode>(args, io, async (ledger) => {
        const write = async (writeLine: (line: string) => Promise<void>) => {
          if (entriesOnly) return writeEntries(ledger, writeLine);
          if (signer === null) throw usageError('this home directory has no signing key: open it once for writing');
          return writeEvidence(
            withholdByLanes(ledger.store),
            requireSignedHead(await ledger.externalHeadStore.read()),
            signer,
            writeLine,
          );
        };
        const written = await writeNewFile(path, write);
        const { entries, artifacts } = written;
        const message = `wrote ${entries} entries and ${countText(artifacts, 'artifact')} to ${path}\n`;
        await io.stdout.write(json ? jsonLine(written) : message);
        return 0;
      }),
    );
  },
});

async function writeEntries({ store }: OpenLedger, writeLine: (line: string) => Promise<void>) {
  let entries = 0;
  for await (const { text } of store.log()) {
    await writeLine(`${text}\n`);
    entries += 1;
  }
  return { entries, artifacts: 0, runs: 0 };
}

/** Readable by its owner only; never replaces a file. */
async function writeNewFile<T>(
  path: string,
  work: (writeLine: (line: string) => Promise<void>) => Promise<T>,
): Promise<T> {
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true });
  await once(file, 'open').catch((error: unknown) => {
    throw usageError(`cannot write ${path}: ${(error as NodeJS.ErrnoException).code ?? 'error'}`);
  });
  const done = await work(async (line) => {
    if (!file.write(line)) await once(file, 'drain');
  });
  file.end();
  await finished(file);
  return done;
}

/** 15 digits: every such number is exact. */
const ENTRIES_MAX = 999_999_999_999_999;
const [ACTOR, ...OTHERS] = OPERATOR_OPTIONS;

/** `turnpike ledger archive`: moves the oldest entries of a ledger to a file that proves what they were. */
const ledgerArchive: CliCommand = defineCommand({
  name: 'ledger archive',
  access: 'write',
  summary: 'Move the oldest entries of the ledger to a signed archive file; the ledger continues from there',
  operands: { usage: 'FILE', min: 1, max: 1 },
  options: [
    {
      name: 'before',
      value: 'SIZE',
      type: integerType({ max: ENTRIES_MAX, takes: 'a number of entries', quotes: true }),
      help: 'archive at most the first SIZE entries (default: all signed entries)',
    },
    {
      name: 'actor',
      value: 'NAME',
      default: OPERATOR_DEFAULTS.role,
      help: `${ACTOR.help} (default: ${OPERATOR_DEFAULTS.role})`,
    },
    ...OTHERS,
  ],
  notes: [
    'Only whole run trees that have ended are archived: the first active tree keeps everything after it in the ledger.',
    '`ledger verify FILE --key KEY` verifies FILE by itself; `ledger verify --archive FILE` verifies it together with',
    'the ledger. Store FILE safely: the ledger keeps only the ids and run records of its entries. A case with archived',
    'trees can be neither exported nor promoted from. No other process may have the home directory open. Policy decides',
    'first: conditions of the action "archive", which are decided for each case with entries to archive, an approval for',
    'archive, and the lanes that list the tool ledger.archive.',
  ],
  async run(args, io) {
    const path = resolve(io.cwd, args.operands[0] ?? '');
    const { before = null, json } = args.values;
    const operator = operatorOf(args.values);
    return exitOneIfTampered(io, async () => {
      const ledger = homeOf(args, io).ledger;
      const bytes_before = fileSizeOf(ledger);
      const archived = await archive({ path, before, operator }, args, io);
      const sizes = { bytes_before, bytes_after: fileSizeOf(ledger) };
      await io.stdout.write(json ? jsonLine({ ...archived, ...sizes }) : textOf(archived, path, sizes));
      return 0;
    });
  },
});

interface ArchiveRequest {
  readonly path: string;
  /** The number of entries to archive at most; null: all that are signed. */
  readonly before: number | null;
  readonly operator: Operator;
}

/** Archives what policy allows: the request names the boundary and the cases, and the archive ends there. */
async function archive(
  { path, before, operator }: ArchiveRequest,
  args: CommandArguments,
  io: Io,
): Promise<ArchiveResult> {
  if (readStoreHome(homeOf(args, io).home) !== null) {
    throw usageError('a ledger in a database cannot be archived: its entries stay in the database');
  }
  const { from, size, root, cases, held } = await withLockedLedger(args, io, (ledger) => planArchive(ledger, before));
  const archiveNow = (): Promise<ArchiveResult> =>
    withLockedLedger(args, io, (ledger) => archiveLedger(ledger, size, () => createArchiveDraft(path)));
  if (size === from) return archiveNow();
  const request = { action: 'ARCHIVE_LEDGER', cases, details: { from, size, root } } as const;
  const grant = await withLocalTurnpike(args, io, (turnpike) => turnpike.requestAct(operator, request));
  try {
    const archived = await archiveNow();
    await withLocalTurnpike(args, io, (turnpike) => turnpike.reportAct(grant, 'done'));
    return { ...archived, held };
  } catch (error) {
    await withLocalTurnpike(args, io, (turnpike) => turnpike.reportAct(grant, 'failed')).catch(() => undefined);
    throw error;
  }
}

/** Opens the ledger of a home directory without an engine. */
async function withLockedLedger<T>(
  args: CommandArguments,
  io: Io,
  work: (ledger: LockedLedger) => Promise<T>,
): Promise<T> {
  const home = homeOf(args, io);
  const progress = progressFor(args, io);
  const { store, externalHeadStore, signHeads } = openHome(home, { readOnly: false });
  try {
    const epoch = await store.acquire();
    await checkArchivable({ store, externalHeadStore });
    await signHeads?.();
    const signer = readLedgerSigner(home.ledgerKey);
    if (signer === null) throw usageError('this home directory has no signing key: open it once for writing');
    progress.begin({ label: 'writing run records', unit: 'entries', total: null });
    const counted = countReads(store, progress, { label: null });
    await new RunRecordWriter({ store: counted, clock: systemClock(), log: io.log, defer: scheduleNextTurn }).finish();
    return await work({ store, epoch, externalHeadStore, signer, progress });
  } finally {
    await externalHeadStore.close();
    await store.close();
  }
}

/** 0 for a missing file: the home does not exist then, which another check reports. */
const fileSizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

function textOf(
  { from, to, trees, sha256, held, tidied }: ArchiveResult,
  path: string,
  { bytes_before, bytes_after }: { readonly bytes_before: number; readonly bytes_after: number },
): string {
  const lines =
    sha256 === null
      ? ['nothing to archive']
      : [
          `archived entries ${nameInLedger(from)} to ${nameInLedger(to - 1)}, ${countText(trees, 'run tree')}, to ${path}`,
          `sha256 ${sha256}`,
          `the ledger now has ${bytes_after} bytes, before ${bytes_before}`,
        ];
  if (held !== null) lines.push(blockerLine(held));
  if (!tidied)
    lines.push('the space in the ledger file could not be reclaimed now: the next `ledger archive` tries again');
  return escapeLines(lines);
}

const BLOCKER_TEXTS: Readonly<Record<BoundaryBlocker['why'], string>> = {
  lives: 'has not ended',
  'goes on': 'continues after that',
  unrecorded: 'has no run records yet',
  'unknown outcome': 'has an unknown outcome that is not settled (`turnpike runs resolve`)',
};

const blockerLine = ({ tree_id, first, why }: BoundaryBlocker): string =>
  `stopped at ${tree_id}, which begins at entry ${nameInLedger(first)} and ${BLOCKER_TEXTS[why]}`;

export const EVIDENCE_COMMANDS: readonly CommandGroup[] = [
  { title: 'evidence', commands: [ledgerExport, ledgerArchive] },
];
