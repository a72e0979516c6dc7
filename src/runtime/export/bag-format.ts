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

/**
 * What a bundle may hold. A bundle is not written beyond these, and one that comes from elsewhere is not read beyond
 * them: what is kept in memory stays bounded, whatever is in it.
 */
export const EXPORT_BAG_LIMITS = {
  /** Of manifest.json. An event takes some 35 of them, an artifact some 300. Memory to verify it: ten times as much. */
  manifest_bytes_max: 25_165_824,
  /** Files of a case; a bag has a few more, and no more than `BAG_LIMITS.entries_max` are read. */
  contents_max: 109_000,
  /** Of proof.json: a hash takes 67. */
  proof_bytes_max: 33_554_432,
  /** A record that waits for its events takes 2 kB. A manifest of this size could name six times as many. */
  runs_max: 500_000,
  /** Objects and arrays of manifest.json, and commas: each costs far more memory than the byte that it is. */
  manifest_groups_max: 600_000,
  manifest_commas_max: 6_000_000,
  /** Of one line of runs.jsonl or audit.jsonl. */
  line_characters_max: 4_194_304,
  line_groups_max: 50_000,
  line_commas_max: 500_000,
  /** Of any JSON in a bundle. */
  depth_max: 16,
  /** References in the events of one run: a record has each of them once, so they are compared with one another. */
  references_per_run_max: 8_192,
  /** A record names so many events, and no more. */
  record_events_max: 10_000,
  /** Entries of the log of a bag; fewer where the caller has named no key, because then nothing in it is trusted. */
  entries_max: 2_000_000,
  untrusted_entries_max: 300_000,
  /** What is kept of the findings beyond those of the bag; the others are counted. */
  findings_max: 1_000,
} as const satisfies Record<string, number>;
