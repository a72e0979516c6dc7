// Reads the two files of a contract folder about upstream servers: upstreams.json, which the deployer writes, and
// upstream-pins.json, which `turnpike upstream pin` writes.

import { isUtf8 } from 'node:buffer';
import { join } from 'node:path';
import type { Static, TSchema } from 'typebox';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';
import { isInstance, findSchemaMistakes } from '../../core/contract/validators.js';
import {
  NO_PINS,
  UPSTREAM_PINS_FILE,
  UPSTREAMS_FILE,
  UpstreamPins,
  UpstreamsConfig,
} from '../../core/contract/policy/upstreams.js';
import { PolicyError } from '../../core/errors.js';
import { isLookAlike } from '../../names/person-name.js';
import { scanJson } from '../../core/contract/json.js';

const FILE_BYTES_MAX = 1_048_576;
const FILE_DEPTH_MAX = 8;
const MISTAKES_SHOWN = 3;

interface UpstreamFiles {
  readonly config: UpstreamsConfig;
  readonly pins: UpstreamPins;
}

/**
 * The configuration and pins of a contract folder; null without upstreams.json. Without a pins file, no tool is pinned.
 * @throws PolicyError POLICY_UNREADABLE, POLICY_INVALID
 */
export function readUpstreams(contract: string): UpstreamFiles | null {
  const config = readJsonFile(join(contract, UPSTREAMS_FILE), UpstreamsConfig);
  if (config === null) return null;
  return { config, pins: readJsonFile(join(contract, UPSTREAM_PINS_FILE), UpstreamPins) ?? NO_PINS };
}

/** Replaces all pins. @returns the path of the file */
export function writePins(contract: string, pins: UpstreamPins['pins']): string {
  const path = join(contract, UPSTREAM_PINS_FILE);
  const sorted = Object.fromEntries(Object.entries(pins).sort(([a], [b]) => (a < b ? -1 : 1)));
  replaceFile(path, `${JSON.stringify({ version: 1, pins: sorted } satisfies UpstreamPins, null, 2)}\n`, 0o644);
  return path;
}

/** The problem of a well-formed configuration, or null. Names of servers must be distinct and must not look alike. */
export function configProblem({ servers }: UpstreamsConfig): string | null {
  const names = servers.map(({ name }) => name);
  const duplicate = names.find((name, index) => names.indexOf(name) !== index);
  if (duplicate !== undefined) return `it names the server ${duplicate} twice`;
  for (const [index, name] of names.entries()) {
    const similar = names.slice(0, index).find((other) => isLookAlike(other, name));
    if (similar !== undefined) return `the servers ${similar} and ${name} look alike: give one of them another name`;
  }
  return null;
}

function readJsonFile<T extends TSchema>(path: string, schema: T): Static<T> | null {
  const bytes = readSmallFile(path, { bytesMax: FILE_BYTES_MAX });
  if (bytes === null) return null;
  const invalid = (why: string) => new PolicyError({ code: 'POLICY_INVALID', message: `${path}: ${why}` });
  if (!isUtf8(bytes)) throw invalid('it is not UTF-8');
  const scanned = scanJson(Buffer.from(bytes).toString('utf8'), FILE_DEPTH_MAX);
  if (!scanned.ok) throw invalid(`it is not strict JSON (${scanned.problem.replaceAll('_', ' ')})`);
  const { value } = scanned;
  if (isInstance(schema, value)) return value;
  const mistakes = findSchemaMistakes(schema, value).slice(0, MISTAKES_SHOWN);
  throw invalid(mistakes.map(({ message }) => message).join('; '));
}
