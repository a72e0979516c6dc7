// A small campaign of one person under many names; `npm run campaign -- redteam --only identities` draws many more.

import { describe, expect, test } from '@jest/globals';
import { attackIdentities } from './identities/campaign.js';
import { SPELLING_KINDS } from './identities/spellings.js';
import { PLANTED } from './identities/subjects.js';

test('S4-78 C87: no spelling of a name gives a second vote, an approval of an own request, or a second token', () => {
  const { figures, failures } = attackIdentities({ seed: 17, cases: 300, every: 100 });
  expect(failures).toEqual([]);
  for (const kind of SPELLING_KINDS) expect([kind, Number(figures[kind]) > 3]).toEqual([kind, true]);
});

describe('a comparison of names with a planted fault is found', () => {
  test.each(PLANTED.map((subject) => [subject.name, subject] as const))('%s', (_name, subject) => {
    const { failures } = attackIdentities({ seed: 17, cases: 300, every: 0, subject, isSearch: true });
    expect(failures).not.toEqual([]);
  });
});
