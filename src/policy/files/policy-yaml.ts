// How the policy files are read, and the published schemas written.

import {
  readStrictYaml,
  type YamlDocument,
  type YamlLimits,
  type YamlNumbers,
  type YamlReadResult,
} from './strict-yaml.js';

export { toYaml, type YamlNumbers } from './strict-yaml.js';

/** The shipped lanes have about 900 parts. */
const POLICY_LIMITS: YamlLimits = { bytes_max: 1_048_576, parts_max: 15_000 };

export type PolicyDocument = YamlDocument;

/** Reads one policy file. Takes any bytes, throws nothing, and needs time in proportion to their number. */
export const readPolicyYaml = (bytes: Uint8Array, numbers: YamlNumbers = 'plain'): YamlReadResult =>
  readStrictYaml(bytes, POLICY_LIMITS, numbers);
