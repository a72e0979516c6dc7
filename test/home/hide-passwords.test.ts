import { describe, expect, test } from '@jest/globals';
import { hidePasswords, withoutPassword } from '../../src/home/hide-passwords.js';

describe('withoutPassword', () => {
  test.each([
    ['postgres://anna:secret@db:5432/ledger', 'postgres://anna@db:5432/ledger'],
    ['postgresql://anna@db/ledger?password=secret&sslmode=require', 'postgresql://anna@db/ledger?sslmode=require'],
    ['postgres:///ledger?host=/run/postgresql', 'postgres:///ledger?host=%2Frun%2Fpostgresql'],
  ])('removes the password of %s', (url, expected) => expect(withoutPassword(url)).toBe(expected));

  test.each(['', 'db', 'mysql://anna:secret@db/ledger', 'postgres://anna:secret@db:x/ledger'])(
    'rejects %p without repeating it',
    (url) => {
      const reject = (): string => withoutPassword(url);
      expect(reject).toThrow('--store takes a URL');
      expect(reject).not.toThrow('secret');
    },
  );
});

test('hidePasswords replaces every password of a text, and nothing else', () => {
  const text = 'a postgres://anna:se@cret@db/x?password=two&a=1 and http://127.0.0.1:7391/a:b@c, 12:30@noon';
  const hidden = 'a postgres://anna:***@db/x?password=***&a=1 and http://127.0.0.1:7391/a:b@c, 12:30@noon';
  expect(hidePasswords(text)).toBe(hidden);
});
