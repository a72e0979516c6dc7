/** Limits of a bag, because all of its bytes are untrusted. A caller may lower each of them. */
export const BAG_LIMITS = {
  /** Files, directories and rejected entries together. */
  entries_max: 110_000,
  /** All files together. */
  bytes_max: 2 ** 40,
  /** bagit.txt. */
  declaration_bytes_max: 4_096,
  /** bag-info.txt. */
  info_bytes_max: 1_048_576,
  /** One manifest, and fetch.txt. */
  manifest_bytes_max: 268_435_456,
  /** One line in any of these files. */
  line_characters_max: 16_384,
  /** Manifests of both kinds. */
  manifests_max: 24,
  /** Recorded findings; further ones are only counted. */
  findings_max: 1_000,
} as const satisfies Record<string, number>;
export type BagLimits = { readonly [Name in keyof typeof BAG_LIMITS]: number };
