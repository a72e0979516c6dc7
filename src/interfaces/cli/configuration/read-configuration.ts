// The configuration of a command: turnpike.yaml and TURNPIKE_* variables.

import { mergeConfiguration, type Configuration } from '../../../host/configuration/configuration.js';
import type { ConfigurationKey, ConfigurationValue } from '../../../host/configuration/configuration-key.js';
import {
  CONFIGURATION_VARIABLE,
  readConfigurationFile,
  RESERVED_VARIABLES,
  toTurnpikeOptions,
} from '../../../host/configuration/turnpike-configuration.js';
import type { ConfiguredArguments } from '../arguments.js';
import type { CliCommand } from '../command.js';
import type { Io } from '../io.js';
import { keyName, SHARED_OPTIONS } from './command-keys.js';

/**
 * Reads the configuration file and the environment.
 * @param file the value of `--config`
 * @throws UsageError that lists every problem
 */
export function readConfiguration(
  keys: readonly ConfigurationKey[],
  file: string | undefined,
  { cwd, environment }: Pick<Io, 'cwd' | 'environment'>,
): Configuration {
  const found = readConfigurationFile(cwd, file ?? environment[CONFIGURATION_VARIABLE]);
  return mergeConfiguration(keys, { file: found, environment, reserved: RESERVED_VARIABLES });
}

/** The configured values of one command. */
export function configuredArguments(command: CliCommand, configuration: Configuration): ConfiguredArguments {
  const options = new Map<string, ConfigurationValue>();
  const take = (option: string, key: string): void => {
    const found = configuration.values.get(key);
    if (found !== undefined) options.set(option, found.value);
  };
  for (const name of SHARED_OPTIONS) take(name, name);
  const { section, operandKey } = command;
  if (section !== undefined) {
    for (const { name } of command.options) take(name, `${section}.${keyName(name)}`);
  }
  const operand = operandKey === undefined ? undefined : configuration.values.get(`${section}.${operandKey}`);
  return {
    options,
    operand: typeof operand?.value === 'string' ? operand.value : null,
    openOptions: toTurnpikeOptions(configuration),
  };
}
