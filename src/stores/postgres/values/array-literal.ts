// Arrays as PostgreSQL reads them. The driver would quote each element in several passes, and the arrays of a commit
// have an element for each tree, mark or content.

import { InvariantError } from '../../../core/errors.js';

/** Parameters of a statement: arrays as text, everything else unchanged. @throws InvariantError as `arrayLiteral` */
export const toParameters = (values: readonly unknown[]): unknown[] =>
  values.map((value) => (Array.isArray(value) ? arrayLiteral(value) : value));

/** An array of strings, numbers, booleans and nulls. @throws InvariantError for anything else */
export function arrayLiteral(items: readonly unknown[]): string {
  let text = '';
  for (const item of items) text += `${text === '' ? '' : ','}${elementText(item)}`;
  return `{${text}}`;
}

const SPECIAL = /["\\]/;

function elementText(item: unknown): string {
  switch (typeof item) {
    case 'string':
      return SPECIAL.test(item) ? `"${item.replaceAll(/["\\]/g, '\\$&')}"` : `"${item}"`;
    case 'number':
    case 'boolean':
      return String(item);
    default:
      if (item === null || item === undefined) return 'NULL';
      throw new InvariantError(`an array parameter cannot hold a value of type ${typeof item}`);
  }
}
