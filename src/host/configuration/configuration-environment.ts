// The values of environment variables. A service of a container platform with the name of this program puts variables
// with our prefix into every environment, so that an unknown variable is an error only if it looks like a key.

import {
  describeType,
  keyText,
  VARIABLE_PREFIX,
  variableOf,
  type ConfigurationKey,
  type ConfigurationType,
  type ConfigurationValue,
} from './configuration-key.js';
import { nearestName } from './nearest-name.js';

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface EnvironmentResult {
  /** By `keyText`. */
  readonly values: ReadonlyMap<string, ConfigurationValue>;
  /** Variables with our prefix that are no keys. */
  readonly ignored: readonly string[];
  readonly problems: readonly string[];
}

/** What a container platform sets in every container if one of its services is named `turnpike`. */
const PLATFORM_VARIABLE = /^TURNPIKE_(?:SERVICE_HOST|SERVICE_PORT(?:_.*)?|PORT(?:_\d+_.*)?)$/;

/** @param reserved variables that something else reads */
export function parseEnvironment(
  keys: readonly ConfigurationKey[],
  environment: Environment,
  reserved: readonly string[] = [],
): EnvironmentResult {
  const known = new Map(keys.map((key) => [variableOf(key), key]));
  const sections = new Set(keys.flatMap(({ section }) => section ?? []));
  const values = new Map<string, ConfigurationValue>();
  const [ignored, problems]: [string[], string[]] = [[], []];
  for (const [variable, text] of Object.entries(environment).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (!variable.startsWith(VARIABLE_PREFIX) || text === undefined || reserved.includes(variable)) continue;
    const key = known.get(variable);
    if (key === undefined) {
      const problem = unknownVariable(variable, [...known.keys()], sections);
      if (problem === null) ignored.push(variable);
      else problems.push(problem);
      continue;
    }
    const value = parseVariable(key.type, text);
    if (value === null) problems.push(`${variable} takes ${describeType(key.type)}`);
    else values.set(keyText(key), value);
  }
  return { values, ignored, problems };
}

/** A name that another program may well have set is no problem. */
function unknownVariable(variable: string, known: readonly string[], sections: ReadonlySet<string>): string | null {
  if (PLATFORM_VARIABLE.test(variable)) return null;
  const nearest = nearestName(variable, known);
  if (nearest !== null) return `${variable} is not a variable of this program; did you mean ${nearest}?`;
  const section = [...sections].find((name) => variable.startsWith(`${VARIABLE_PREFIX}${name.toUpperCase()}_`));
  return section === undefined ? null : `${variable} names no key of ${section}`;
}

/** Lists are separated by commas. @returns null for a text that is not a value of the type */
function parseVariable(type: ConfigurationType, text: string): ConfigurationValue | null {
  switch (type.kind) {
    case 'text':
    case 'path':
      return text === '' ? null : text;
    case 'list': {
      const items = text.split(',').map((item) => item.trim());
      return items.includes('') ? null : items;
    }
    case 'flag':
      return text === 'true' ? true : text === 'false' ? false : null;
    case 'integer': {
      const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
      return Number.isSafeInteger(value) && value >= type.min && value <= type.max ? value : null;
    }
    case 'choice':
      return type.choices.includes(text) ? text : null;
  }
}
