// The settings that a configuration file and the environment can give, as data. Parser, JSON Schema, reference page and
// `turnpike config print` are made from it.

/** What values a key takes. A `path` of a file is relative to the folder of that file. */
export type ConfigurationType =
  | { readonly kind: 'text' | 'path' | 'list' | 'flag' }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number }
  | { readonly kind: 'choice'; readonly choices: readonly string[] };

/** The value of a key, checked against its type. */
export type ConfigurationValue = string | number | boolean | readonly string[];

export interface ConfigurationKey {
  /** The mapping of the file that contains the key, or null at its top level. */
  readonly section: string | null;
  /** In snake_case. */
  readonly name: string;
  readonly type: ConfigurationType;
  readonly help: string;
}

/** The prefix of every variable. */
export const VARIABLE_PREFIX = 'TURNPIKE_';

/** The key as messages show it, e.g. `serve.port`. */
export const keyText = ({ section, name }: Pick<ConfigurationKey, 'section' | 'name'>): string =>
  section === null ? name : `${section}.${name}`;

/** The variable of a key, e.g. `TURNPIKE_SERVE_PORT`. */
export const variableOf = ({ section, name }: Pick<ConfigurationKey, 'section' | 'name'>): string =>
  `${VARIABLE_PREFIX}${section === null ? '' : `${section}_`}${name}`.toUpperCase();

/** What the value of a type has to be, for messages. */
export function describeType(type: ConfigurationType): string {
  switch (type.kind) {
    case 'text':
      return 'a text';
    case 'path':
      return 'a path';
    case 'list':
      return 'a list of texts';
    case 'flag':
      return 'true or false';
    case 'integer':
      return `a whole number from ${type.min} to ${type.max}`;
    case 'choice':
      return `one of ${type.choices.join(', ')}`;
  }
}
