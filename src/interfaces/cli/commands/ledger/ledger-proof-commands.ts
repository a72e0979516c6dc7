import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { nameInLedger } from '../../../../core/contract/entry-name.js';
import { usageError } from '../../../../core/errors.js';
import { NOTE_BYTES_MAX } from '../../../../core/ledger/proof/signed-note.js';
import { readLedgerVerifier } from '../../../../home/ledger-key.js';
import type { JoinedLog } from '../../../../runtime/ledger/joined-log.js';
import { proveConsistency, proveEntry, requireSignedHead } from '../../../../runtime/ledger/ledger-proofs.js';
import { PROOF_BYTES_MAX, verifyProofFile, type ProofVerdict } from '../../../../runtime/ledger/proof-file.js';
import { readSmallFile } from '../../../../system/files/small-file.js';
import { defineCommand, NO_OPERANDS, type CliCommand, type CommandArguments, type ExitCode } from '../../command.js';
import { exitOneIfTampered } from '../../exit-code.js';
import type { Io } from '../../io.js';
import { PATH_TYPE } from '../../option-types.js';
import {
  ARCHIVE_OPTION,
  joinWholeLog,
  withOpenArchives,
  KEY_OPTIONS,
  readTrustedKey,
  explainingFork,
  readOwnCheckpoint,
  writeProofFile,
} from '../../options/evidence-file.js';
import { ENTRY_NOTES, findLogIndex } from '../../options/entry-name-argument.js';
import { homeOf, withLedger, type OpenLedger } from '../../options/folders.js';
import { coverageText } from '../../text/coverage-text.js';
import { createPainter, escapeText, jsonLine } from '../../text/terminal.js';

/** `turnpike ledger checkpoint`: prints a signed checkpoint of the ledger. */
export const ledgerCheckpoint: CliCommand = defineCommand({
  name: 'ledger checkpoint',
  access: 'read',
  summary: 'Print the last signed checkpoint; a copy stored elsewhere exposes any later change of what it covers',
  operands: NO_OPERANDS,
  options: [{ name: 'out', value: 'FILE', type: PATH_TYPE, help: 'write the checkpoint to FILE' }],
  notes: [
    'A checkpoint is a signed note (C2SP): the name of the log, the number of entries, the root of their tree and the',
    'signature. With a stored checkpoint, `ledger prove --from` shows later whether the ledger was changed or',
    'truncated. With --json, also prints the public key.',
  ],
  async run(args, io) {
    return withLedger<ExitCode>(args, io, async ({ externalHeadStore }) => {
      const { size, root, note } = requireSignedHead(await externalHeadStore.read());
      const key = readLedgerVerifier(homeOf(args, io).ledgerKey);
      const { out, json } = args.values;
      if (out !== undefined) await writeFile(out, note);
      else if (json) await io.stdout.write(jsonLine({ size, root, key: key?.name ?? null, note }));
      else await io.stdout.write(note);
      return 0;
    });
  },
});

/** `turnpike ledger prove`: writes an inclusion or consistency proof for anyone who has the public key. */
export const ledgerProve: CliCommand = defineCommand({
  name: 'ledger prove',
  access: 'read',
  summary: 'Write a proof that an entry is in the ledger, or that the ledger extends a checkpoint',
  operands: { usage: '[ENTRY]', min: 0, max: 1 },
  options: [
    { name: 'from', value: 'FILE', help: 'prove that the ledger extends the signed checkpoint in FILE' },
    ARCHIVE_OPTION,
    { name: 'out', value: 'FILE', type: PATH_TYPE, help: 'write the proof to FILE instead of standard output' },
  ],
  notes: [
    ...ENTRY_NOTES,
    'The proof contains the entry, so every recipient can read it. `ledger check-proof` verifies the proof with nothing',
    'but the public key (keys/ledger.vkey).',
  ],
  async run(args, io) {
    const [entry] = args.operands;
    const { from, out } = args.values;
    if ((entry === undefined) === (from === undefined)) throw args.usageError('give either ENTRY or --from');
    return exitOneIfTampered(io, () =>
      withLedger<ExitCode>(args, io, async (ledger) => {
        const proof = await withOpenArchives(args, io, async (archives) => {
          const log = await joinWholeLog(ledger, archives);
          return entry === undefined
            ? proveFromCheckpoint(ledger, log, from ?? '', args, io)
            : proveEntryAt(ledger, log, entry);
        });
        if (out === undefined) await io.stdout.write(proof);
        else writeProofFile(out, proof);
        return 0;
      }),
    );
  },
});

async function proveEntryAt({ externalHeadStore, store }: OpenLedger, log: JoinedLog, text: string): Promise<string> {
  const log_index = await findLogIndex(text, { ...log, trees: () => store.trees() });
  return proveEntry(log, await externalHeadStore.read(), log_index);
}

async function proveFromCheckpoint(
  { externalHeadStore, store }: OpenLedger,
  log: JoinedLog,
  file: string,
  args: CommandArguments,
  io: Io,
): Promise<string> {
  const { older, note, key } = readOwnCheckpoint(file, args, io);
  return explainingFork(store, older, async () =>
    proveConsistency(log, await externalHeadStore.read(), { ...older, note }, key),
  );
}

/** `turnpike ledger check-proof`: needs neither a home directory nor a ledger. */
export const ledgerCheckProof: CliCommand = defineCommand({
  name: 'ledger check-proof',
  access: 'none',
  summary: 'Verify a proof with nothing but the public key of its ledger',
  operands: { usage: 'FILE', min: 1, max: 1 },
  options: [
    {
      name: 'from',
      value: 'FILE',
      type: PATH_TYPE,
      help: 'a signed checkpoint that you have kept: the proof must begin at it',
    },
    ...KEY_OPTIONS,
  ],
  notes: [
    'FILE is the output of `ledger prove`, or of `policy coverage --sign`. The command prints the proved entry, the sizes',
    'of the two checkpoints, or the signed counts with them: that the counts are right is what the key claims.',
    'Without --from, a consistency proof may begin at any checkpoint that the key has signed, also at one that is not yours.',
    'Exits 1 if the proof is invalid. Get the key from a source that you trust, not from the sender of the proof.',
  ],
  async run(args, io) {
    const file = resolve(io.cwd, args.operands[0] ?? '');
    const bytes = readSmallFile(file, { bytesMax: PROOF_BYTES_MAX });
    if (bytes === null) throw usageError(`${file} does not exist`);
    const key = readTrustedKey(args, io);
    if (key === null) throw args.usageError('--key is missing: name the public key that must have signed');
    const { from, json } = args.values;
    const verdict = verifyProofFile(bytes, key, from === undefined ? null : readKept(from));
    await io.stdout.write(json ? jsonLine(verdict) : `${textOf(verdict, io)}\n`);
    return verdict.ok ? 0 : 1;
  },
});

function readKept(path: string): Uint8Array {
  const note = readSmallFile(path, { bytesMax: NOTE_BYTES_MAX });
  if (note === null) throw usageError(`--from: ${path} does not exist`);
  return note;
}

function textOf(verdict: ProofVerdict, io: Io): string {
  if (!verdict.ok) return `not proved: ${verdict.why}`;
  const { origin, size, root } = verdict.at;
  if (verdict.kind === 'entry') {
    return `${escapeText(verdict.text)}\nproved: this is entry ${nameInLedger(verdict.index)} of the ${size} in the log ${escapeText(origin)}, root ${root}`;
  }
  if (verdict.kind === 'coverage') {
    const { from, at } = verdict;
    const range = `from ${from === null ? 'the first entry' : `${from.size} entries`} to ${size} entries, root ${root}`;
    return `${coverageText({ ...verdict, from, to: at }, createPainter(io.colours))}signed: the log ${escapeText(origin)} counted this ${range}`;
  }
  const { from } = verdict;
  return `proved: the log ${escapeText(origin)} of ${size} entries, root ${root}, extends its first ${from.size} entries, root ${from.root}`;
}
