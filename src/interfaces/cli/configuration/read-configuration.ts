// The configuration of a command: turnpike.yaml and TURNPIKE_* variables.

import { mergeConfiguration, type Configuration } from '../../../host/configuration/configuration.js';
import type {
  ConfigurationKey,
  ConfigurationValue,
  ConfigurationType,
} from '../../../host/configuration/configuration-key.js';
import {
  CONFIGURATION_VARIABLE,
  readConfigurationFile,
  RESERVED_VARIABLES,
  toTurnpikeOptions,
  TURNPIKE_KEYS,
} from '../../../host/configuration/turnpike-configuration.js';
import type { ConfiguredArguments } from '../arguments.js';
import type { CliCommand, CommandOption } from '../command.js';
import type { Io } from '../io.js';

/** The name of an option as a key: `--allow-host` is `allow_host`. */
const keyName = (option: string): string => option.replaceAll('-', '_');

/** Options of several commands have one key at the top level. */
const SHARED_OPTIONS = ['home', 'contract', 'store', 'heads', 'registrations'] as const;

const STORE_KEY: ConfigurationKey = {
  section: null,
  name: 'store',
  type: { kind: 'text' },
  help: 'the PostgreSQL database of the ledger, for commands',
};

const HEADS_KEY: ConfigurationKey = {
  section: null,
  name: 'heads',
  type: { kind: 'text' },
  help: 'a PostgreSQL database of another server, where workers also store their newest heads, for commands',
};

const REGISTRATIONS_KEY: ConfigurationKey = {
  section: null,
  name: 'registrations',
  type: { kind: 'path' },
  help: 'a file that `turnpike registrations` has written, for commands (default: what the ledger has registered)',
};

const isShared = (option: string): boolean => SHARED_OPTIONS.some((name) => name === option);

/** All keys: the options of `openTurnpike`, then those of the commands that have a section. */
export const configurationKeys = (commands: readonly CliCommand[]): readonly ConfigurationKey[] => [
  ...TURNPIKE_KEYS,
  STORE_KEY,
  HEADS_KEY,
  REGISTRATIONS_KEY,
  ...commands.flatMap(commandKeys),
];

function commandKeys({ section, options, operands, operandKey }: CliCommand): readonly ConfigurationKey[] {
  if (section === undefined) return [];
  const own = options.filter(({ name }) => !isShared(name));
  const fromOptions = own.map((option) => ({
    section,
    name: keyName(option.name),
    type: typeOf(option),
    help: option.help,
  }));
  if (operandKey === undefined) return fromOptions;
  return [...fromOptions, { section, name: operandKey, type: { kind: 'text' }, help: `the operand ${operands.usage}` }];
}

function typeOf({ value, multiple }: CommandOption): ConfigurationType {
  if (value === undefined) return { kind: 'flag' };
  if (multiple === true) return { kind: 'list' };
  if (value === 'PORT') return { kind: 'integer', min: 0, max: 65_535 };
  return { kind: value === 'DIR' || value === 'FILE' ? 'path' : 'text' };
}

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
