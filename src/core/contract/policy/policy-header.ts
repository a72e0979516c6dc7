import Type from 'typebox';

/** A tool, table, scope field or prohibition: the names that lanes consist of. */
export const PolicyName = Type.String({ minLength: 1, maxLength: 120, pattern: '^[A-Za-z][A-Za-z0-9_.]*$' });

const Version = Type.Literal('v1');

/** The first lines of every policy file. */
export const policyHeader = {
  version: Version,
  contract_version: Version,
  last_updated: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' }),
};
