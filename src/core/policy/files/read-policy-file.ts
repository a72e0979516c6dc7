// Reads one YAML file of policy and checks it against its schema: any bytes, without throwing.

import type { Static, TSchema } from 'typebox';
import { findSchemaMistakes, isInstance, type SchemaMistake } from '../../contract/validators.js';
import type { FindingRule, PolicyFinding } from './policy-finding.js';
import { readStrictYaml, type YamlDocument, type YamlLimits, type YamlReadResult } from './strict-yaml.js';

/** The shipped lanes have about 900 parts. */
const POLICY_LIMITS: YamlLimits = { bytes_max: 1_048_576, parts_max: 15_000 };

/** The bytes of a policy file, and the name that findings use for it. */
export interface NamedPolicyFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

export type FileReadResult<T> =
  | { readonly value: T; readonly document: YamlDocument; readonly findings: readonly [] }
  | { readonly value: null; readonly findings: readonly PolicyFinding[] };

/** Reads one policy file, and checks it against its schema. */
export function readPolicyFile<const T extends TSchema>(
  { path, bytes }: NamedPolicyFile,
  schema: T,
): FileReadResult<Static<T>> {
  const { document, problems } = readPolicyYaml(bytes);
  if (document === null) return { value: null, findings: problems.map((problem) => ({ file: path, ...problem })) };
  const { data, lineOf } = document;
  if (isInstance(schema, data)) return { value: data, document, findings: [] };
  const mistakes = new Map(
    findSchemaMistakes(schema, data)
      .map(toVersionMistake)
      .map((mistake) => [mistake.message, mistake]),
  );
  const findings = [...mistakes.values()].map(({ pointer, ...mistake }) => ({
    file: path,
    line: lineOf(pointer),
    ...mistake,
  }));
  return { value: null, findings };
}

const VERSIONS: readonly string[] = ['/version', '/contract_version'];

type PolicyMistake = Omit<SchemaMistake, 'rule'> & { readonly rule: FindingRule };

const toVersionMistake = (mistake: SchemaMistake): PolicyMistake =>
  VERSIONS.includes(mistake.pointer)
    ? { pointer: mistake.pointer, rule: 'version.mismatch', message: `${mistake.pointer.slice(1)} must be v1` }
    : mistake;

/** Reads one policy file: any bytes, without throwing, in time proportional to their number. */
export const readPolicyYaml = (bytes: Uint8Array): YamlReadResult => readStrictYaml(bytes, POLICY_LIMITS);
