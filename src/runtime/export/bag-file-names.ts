/** The files that a bundle has below `data/`, beside contents. The log and its proof are in bags of version 2. */
export const MANIFEST = 'manifest.json';
export const RUNS = 'runs.jsonl';
export const AUDIT = 'audit.jsonl';
export const LOG = 'entries.jsonl';
export const PROOF = 'proof.json';

/** Lines as the content of a file, each with a line feed at its end. */
export async function* encodeLines(batches: AsyncIterable<readonly string[]>): AsyncGenerator<Uint8Array> {
  for await (const lines of batches) if (lines.length > 0) yield Buffer.from(`${lines.join('\n')}\n`);
}
