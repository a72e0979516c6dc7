import { hidePasswords } from '../../../home/hide-passwords.js';
import type { Configuration, ConfigurationOrigin } from '../../../host/configuration/configuration.js';
import {
  keyText,
  type ConfigurationKey,
  type ConfigurationValue,
} from '../../../host/configuration/configuration-key.js';
import { defineCommand, NO_OPERANDS, type CliCommand } from '../command.js';
import { configurationKeys, readConfiguration } from '../configuration/read-configuration.js';
import { displayPath } from '../options/folders.js';
import type { Io } from '../io.js';
import { escapeText, jsonLine, table } from '../text/terminal.js';

/** `turnpike config print`: every key that is set, its value, and where it is set. */
export const configPrint = (commands: () => readonly CliCommand[]): CliCommand =>
  defineCommand({
    name: 'config print',
    access: 'none',
    summary: 'Print the configuration, with the origin of each value',
    operands: NO_OPERANDS,
    options: [{ name: 'all', help: 'also the keys that are not set' }],
    notes: [
      'The origin of a value is a line of the configuration file, or a variable. A variable wins over the file, and an',
      'option on the command line wins over both. Passwords in URLs are hidden.',
    ],
    async run(args, io) {
      const keys = configurationKeys(commands());
      const { config, all, json } = args.values;
      const configuration = readConfiguration(keys, config, io);
      const rows = keys.map((key) => rowOf(key, configuration)).filter(({ value }) => value !== null || all);
      if (json) for (const row of rows) await io.stdout.write(jsonLine(row));
      else await io.stdout.write(rowsText(rows, io));
      for (const variable of configuration.ignored)
        await io.stderr.writeLine(`ignored: ${escapeText(variable)} is not a variable of this program`);
      return 0;
    },
  });

interface Row {
  readonly key: string;
  readonly value: ConfigurationValue | null;
  readonly origin: ConfigurationOrigin | null;
}

function rowOf(key: ConfigurationKey, { values }: Configuration): Row {
  const found = values.get(keyText(key));
  if (found === undefined) return { key: keyText(key), value: null, origin: null };
  return { key: keyText(key), value: withoutSecrets(found.value), origin: found.origin };
}

const withoutSecrets = (value: ConfigurationValue): ConfigurationValue =>
  typeof value === 'string'
    ? hidePasswords(value)
    : typeof value === 'object'
      ? value.map((item) => hidePasswords(item))
      : value;

function rowsText(rows: readonly Row[], io: Io): string {
  if (rows.length === 0) return 'nothing is configured: every option has its default\n';
  const cells = rows.map(({ key, value, origin }) => [
    key,
    value === null ? '-' : escapeText(typeof value === 'object' ? value.join(', ') : String(value)),
    originText(origin, io),
  ]);
  return table(
    [['KEY', 'VALUE', 'FROM'], ...cells].map((row) => row.map((text) => ({ text }))),
    (text) => text,
  );
}

function originText(origin: ConfigurationOrigin | null, io: Io): string {
  if (origin === null) return 'default';
  return origin.kind === 'file' ? `${escapeText(displayPath(origin.path, io))}:${origin.line}` : origin.variable;
}
