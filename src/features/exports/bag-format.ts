import { OPTIONAL_FILE_KEYS, POLICY_FILES, type AnyPolicyFile } from '../../core/contract/policy/pins.js';

/** The files of a bag below `data/`, besides contents. Bags of version 2 also have the log and its proof. */
export const MANIFEST = 'manifest.json';
export const RUNS = 'runs.jsonl';
export const AUDIT = 'audit.jsonl';
export const LOG = 'entries.jsonl';
export const PROOF = 'proof.json';

/** The file of a pinned policy. */
export const policyPath = (name: AnyPolicyFile, hash: string): string => `policies/${name}-${hash}.${endingOf(name)}`;
const endingOf = (name: AnyPolicyFile): string => (name === 'conditions' ? 'cedar' : 'yaml');

const POLICIES = new RegExp(
  `^policies/(?:${[...POLICY_FILES, ...OPTIONAL_FILE_KEYS]
    .map((name) => `${name}-([0-9a-f]{64})\\.${endingOf(name)}`)
    .join('|')})$`,
  'u',
);
/** The hash in the path of a pinned policy; undefined for another path. */
export const policyHashIn = (path: string): string | undefined => {
  const [, ...hashes]: readonly (string | undefined)[] = POLICIES.exec(path) ?? [];
  return hashes.find((hash) => hash !== undefined);
};

/** The lines as file content, each with a line feed at its end. */
export async function* encodeLines(batches: AsyncIterable<readonly string[]>): AsyncGenerator<Uint8Array> {
  for await (const lines of batches) if (lines.length > 0) yield Buffer.from(`${lines.join('\n')}\n`);
}

/**
 * Limits of an exported bag. None is written beyond them, and none from elsewhere is read beyond them, so memory stays
 * bounded for any bag.
 */
export const EXPORT_BAG_LIMITS = {
  /**
   * Of manifest.json. An event takes some 35 bytes, an artifact some 300. Verification needs ten times as much memory.
   */
  manifest_bytes_max: 25_165_824,
  /** Files of a case. A bag has a few more; no more than `BAG_LIMITS.entries_max` are read. */
  contents_max: 109_000,
  /** Of proof.json. A hash takes 67 bytes. */
  proof_bytes_max: 33_554_432,
  /**
   * A record whose events are not complete takes 2 kB of memory. A manifest of the allowed size could name six times as
   * many runs.
   */
  runs_max: 500_000,
  /** Objects, arrays and commas of manifest.json: in memory each takes far more than its one byte. */
  manifest_groups_max: 600_000,
  manifest_commas_max: 6_000_000,
  /** Of one line of runs.jsonl or audit.jsonl. */
  line_characters_max: 4_194_304,
  line_groups_max: 50_000,
  line_commas_max: 500_000,
  /** Nesting of any JSON in a bag. */
  depth_max: 16,
  /** References in the events of one run. A record lists each of them once, so they are compared pairwise. */
  references_per_run_max: 8_192,
  /** Limit of events that a record names. */
  record_events_max: 10_000,
  /** Entries of the log of a bag; fewer without a key of the caller, because then none of them is trusted. */
  entries_max: 2_000_000,
  untrusted_entries_max: 300_000,
  /** Recorded findings besides those of the BagIt verification; further ones are only counted. */
  findings_max: 1_000,
} as const satisfies Record<string, number>;
