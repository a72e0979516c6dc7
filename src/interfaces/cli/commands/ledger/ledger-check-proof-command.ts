import { nameInLedger } from '../../../../core/contract/entry-name.js';
import { usageError } from '../../../../core/errors.js';
import { resolve } from 'node:path';
import { readSmallFile } from '../../../../system/files/small-file.js';
import { verifyProofFile, PROOF_BYTES_MAX, type ProofVerdict } from '../../../../runtime/ledger/proof-file.js';
import { NOTE_BYTES_MAX } from '../../../../core/ledger/proof/signed-note.js';
import { commandUsageError } from '../../arguments.js';
import type { CliCommand } from '../../command.js';
import type { Io } from '../../io.js';
import { KEY_OPTIONS, readTrustedKey } from '../../options/evidence-file.js';
import { coverageText } from '../../text/coverage-text.js';
import { createPainter, escapeText, jsonLine } from '../../text/terminal.js';

/** `turnpike ledger check-proof`: needs neither a home directory nor a ledger. */
export const ledgerCheckProof: CliCommand = {
  name: 'ledger check-proof',
  access: 'none',
  summary: 'Verify a proof with nothing but the public key of its ledger',
  operands: { usage: 'FILE', min: 1, max: 1 },
  options: [
    { name: 'from', value: 'FILE', help: 'a signed checkpoint that you have kept: the proof must begin at it' },
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
    if (key === null)
      throw commandUsageError(ledgerCheckProof, '--key is missing: name the public key that must have signed');
    const verdict = verifyProofFile(bytes, key, readKept(args.text('from'), io));
    await io.stdout.write(args.flag('json') ? jsonLine(verdict) : `${textOf(verdict, io)}\n`);
    return verdict.ok ? 0 : 1;
  },
};

function readKept(name: string | undefined, io: Io): Uint8Array | null {
  if (name === undefined) return null;
  const path = resolve(io.cwd, name);
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
