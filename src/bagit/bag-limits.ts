/** Every byte of a bag is hostile, so that nothing in it may be without end. Lower any of them per call. */
export const BAG_LIMITS = {
  /** Files, directories and refused things together. */
  entries_max: 110_000,
  /** Of all files together. */
  bytes_max: 2 ** 40,
  /** Of bagit.txt. */
  declaration_bytes_max: 4_096,
  /** Of bag-info.txt. */
  info_bytes_max: 1_048_576,
  /** Of one manifest, and of fetch.txt. */
  manifest_bytes_max: 268_435_456,
  /** Of one line in any of them. */
  line_characters_max: 16_384,
  /** Manifests of both kinds. */
  manifests_max: 24,
  /** What is kept of the findings; those beyond are counted. */
  findings_max: 1_000,
} as const satisfies Record<string, number>;
export type BagLimits = { readonly [Name in keyof typeof BAG_LIMITS]: number };
