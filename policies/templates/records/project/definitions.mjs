// What the service registers. Loading this file starts nothing, so `turnpike registrations` can read it.

import { defineTarget } from 'turnpike';

/** A table in the database of the ledger: a row and its record in the ledger are committed together. */
export const targets = [
  defineTarget({
    name: 'tickets',
    summary: 'The open questions of a case.',
    record: {
      type: 'object',
      additionalProperties: false,
      required: ['id', 'title', 'done'],
      properties: {
        id: { type: 'string', maxLength: 40 },
        title: { type: 'string', maxLength: 200 },
        done: { type: 'boolean' },
      },
    },
    key: ['id'],
    modes: ['upsert'],
  }),
];
