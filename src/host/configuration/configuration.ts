// The configuration of a process: the values of a file and of the environment, which wins. Options of a command and
// arguments of a call win over both.

import { usageError } from '../../core/errors.js';
import { parseConfigurationFile, type ConfigurationFile } from './configuration-document.js';
import { parseEnvironment, type Environment } from './configuration-environment.js';
import { variableOf, keyText, type ConfigurationKey, type ConfigurationValue } from './configuration-key.js';

/** Where a value comes from: a file and line, or a variable. */
export type ConfigurationOrigin =
  | { readonly kind: 'file'; readonly path: string; readonly line: number }
  | { readonly kind: 'environment'; readonly variable: string };

export interface ConfiguredValue {
  readonly value: ConfigurationValue;
  readonly origin: ConfigurationOrigin;
}

export interface Configuration {
  /** Null without a file. */
  readonly file: string | null;
  /** By `keyText`. */
  readonly values: ReadonlyMap<string, ConfiguredValue>;
  /** Variables with the prefix of this program that are no keys. */
  readonly ignored: readonly string[];
}

export interface ConfigurationSources {
  readonly file: ConfigurationFile | null;
  readonly environment: Environment;
  /** Sections of the file that another program reads. */
  readonly otherSections?: readonly string[];
  /** Variables that are not keys, but are read elsewhere. */
  readonly reserved?: readonly string[];
}

/**
 * The values of all sources.
 * @throws UsageError that lists every problem
 */
export function mergeConfiguration(
  keys: readonly ConfigurationKey[],
  { file, environment, otherSections = [], reserved = [] }: ConfigurationSources,
): Configuration {
  const fromFile = file === null ? null : parseConfigurationFile(keys, file, otherSections);
  const fromEnvironment = parseEnvironment(keys, environment, reserved);
  const problems = [...(fromFile?.problems ?? []), ...fromEnvironment.problems];
  if (problems.length > 0) throw usageError(`the configuration is invalid:\n${problems.join('\n')}`);
  const values = new Map<string, ConfiguredValue>();
  for (const key of keys) {
    const name = keyText(key);
    const [fileValue, variableValue] = [fromFile?.values.get(name), fromEnvironment.values.get(name)];
    if (variableValue !== undefined) {
      values.set(name, { value: variableValue, origin: { kind: 'environment', variable: variableOf(key) } });
    } else if (file !== null && fileValue !== undefined) {
      const origin = { kind: 'file', path: file.path, line: fileValue.line } as const;
      values.set(name, { value: fileValue.value, origin });
    }
  }
  return { file: file?.path ?? null, values, ignored: fromEnvironment.ignored };
}
