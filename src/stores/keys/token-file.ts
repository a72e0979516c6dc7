import { hash, timingSafeEqual } from 'node:crypto';
import { statSync } from 'node:fs';
import { quoteForMessage } from '../../core/contract/finding-text.js';
import { readJson } from '../../core/contract/json.js';
import { CaseId, Identifier } from '../../core/contract/shapes.js';
import { findTextProblem } from '../../core/contract/text-rule.js';
import {
  CROSS_CASE_RIGHTS,
  RIGHTS,
  TOKENS_MAX,
  TokenList,
  TokenRecord,
  type Right,
} from '../../core/contract/token.js';
import { isConforming } from '../../core/contract/validators.js';
import { UsageError, usageError } from '../../core/errors.js';
import { isLookAlike, NAME_PROBLEMS, nameProblem } from '../../names/person-name.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { Principal, TokenBook } from '../../engine/ports/token-book.js';
import { drawToken } from './access-token.js';
import { errorCode } from '../../system/error-code.js';
import { nanoidIds } from '../../system/nanoid-ids.js';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';
import { withFileLock } from '../sqlite/writer-lock.js';
import { systemClock } from '../../system/system-clock.js';

const BYTES_MAX = 1_048_576;
const MODE = 0o600;
const FORBIDDEN = 0o077;
const DAY_MS = 86_400_000;

/** The permissions and the lifetime of a new token. */
export interface TokenGrant {
  readonly actor: string;
  readonly role: string;
  readonly rights: readonly Right[];
  readonly case?: string;
  /** Lifetime in days. Default: valid until it is revoked. */
  readonly days?: number;
}

/** A new token, which is stored nowhere, and the record that is stored instead of it. */
export interface MintedToken {
  readonly token: string;
  readonly record: TokenRecord;
}

/** Creates a token without storing it: a book that contains its record accepts it. @throws UsageError */
export function mintToken(
  { actor, role, rights, case: case_id, days }: TokenGrant,
  clock: Clock = systemClock(),
  ids: Ids = nanoidIds(),
): MintedToken {
  if (case_id !== undefined && rights.some((right) => CROSS_CASE_RIGHTS.has(right))) {
    throw usageError('a token for one case can neither observe nor speak to sessions: those are not kept to a case');
  }
  const problem = nameProblem(actor);
  if (problem !== null) throw usageError(`the name of the actor ${NAME_PROBLEMS[problem]}`);
  const token = drawToken();
  const now = clock.now();
  const record = {
    id: ids.draw('tok_'),
    sha256: hash('sha256', token),
    actor,
    role,
    case: case_id ?? null,
    rights: [...new Set(rights)],
    created_at: new Date(now).toISOString(),
    expires_at: days === undefined ? null : new Date(now + days * DAY_MS).toISOString(),
  };
  if (isConforming(TokenList, { version: 1, tokens: [record] })) return { token, record };
  throw usageError(grantProblem({ actor, role, rights, ...(case_id === undefined ? {} : { case: case_id }) }));
}

/** What is wrong with a grant, in words. */
function grantProblem({ actor, role, rights, case: case_id }: Omit<TokenGrant, 'days'>): string {
  const texts = [
    { name: 'actor', schema: TokenRecord.properties.actor, text: actor, noun: 'a name' },
    { name: 'role', schema: Identifier, text: role, noun: 'a role' },
    ...(case_id === undefined ? [] : [{ name: 'case', schema: CaseId, text: case_id, noun: 'a case' }]),
  ];
  for (const { name, schema, text, noun } of texts) {
    if (!isConforming(schema, text))
      return `${name}: ${quoteForMessage(text)} ${findTextProblem(schema, text, noun) ?? `is not ${noun}`}`;
  }
  return rights.length === 0 ? 'rights: at least one' : `rights: only ${RIGHTS.join(', ')}`;
}

/** A token book over the records that `records` returns at the time of each lookup. */
export function tokenBook(records: () => readonly TokenRecord[], clock: Clock = systemClock()): TokenBook {
  const known = new Map<TokenRecord, { readonly digest: Buffer; readonly principal: Principal }>();
  let list: readonly TokenRecord[] = [];
  const current = () => {
    const now = records();
    if (now !== list) {
      list = now;
      known.clear();
      for (const record of now) {
        known.set(record, { digest: Buffer.from(record.sha256, 'hex'), principal: principalOf(record) });
      }
    }
    return known;
  };
  const isUnexpired = ({ expires_at }: TokenRecord): boolean =>
    expires_at === null || Date.parse(expires_at) > clock.now();
  return {
    find(token) {
      const given = hash('sha256', token, 'buffer');
      let found: Principal | null = null;
      // No early exit: the time must not depend on which record matches.
      for (const [record, { digest, principal }] of current()) {
        if (timingSafeEqual(given, digest) && isUnexpired(record)) found = principal;
      }
      return found;
    },
    holds: (id) => [...current().keys()].some((record) => record.id === id && isUnexpired(record)),
  };
}

/** Drops rights that a token for one case must not have, because an older version may have written the record. */
const principalOf = ({ id, actor, role, case: case_id, rights }: TokenRecord): Principal => ({
  id,
  actor,
  role,
  case: case_id,
  rights: new Set(rights.filter((right) => case_id === null || !CROSS_CASE_RIGHTS.has(right))),
});

/** A book with one token, which the caller has generated. */
export function singleTokenBook(
  token: string,
  grant: Omit<TokenGrant, 'days'>,
  clock: Clock = systemClock(),
): TokenBook {
  const { actor, role, rights, case: case_id = null } = grant;
  const created_at = new Date(clock.now()).toISOString();
  const sha256 = hash('sha256', token);
  const records = [
    { id: 'tok_single', sha256, actor, role, case: case_id, rights: [...rights], created_at, expires_at: null },
  ];
  return tokenBook(() => records, clock);
}

/** Looks a token up in each book; the first match counts. */
export const joinTokenBooks = (...books: readonly TokenBook[]): TokenBook => ({
  find: (token) => books.map((book) => book.find(token)).find((principal) => principal !== null) ?? null,
  holds: (id) => books.some((book) => book.holds(id)),
});

/** The tokens of a home directory, in a file with mode 0600. Another process may change it at any time. */
export class TokenFile implements TokenBook {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #book: TokenBook;
  #stamp = '';
  #records: readonly TokenRecord[] = [];

  constructor(path: string, clock: Clock = systemClock()) {
    this.#path = path;
    this.#clock = clock;
    this.#book = tokenBook(() => this.#current(), clock);
  }

  find(token: string): Principal | null {
    return this.#book.find(token);
  }

  holds(id: string): boolean {
    return this.#book.holds(id);
  }

  /** @throws PolicyError if other users may access the file or it is not regular; UsageError for invalid content */
  list(): readonly TokenRecord[] {
    const bytes = readSmallFile(this.#path, { bytesMax: BYTES_MAX, forbiddenMode: FORBIDDEN });
    if (bytes === null) return [];
    const value = readJson(bytes);
    if (!isConforming(TokenList, value)) {
      throw new UsageError({
        code: 'USAGE',
        message: `${this.#path} is not a valid list of tokens: restore it or remove it`,
      });
    }
    return (value as TokenList).tokens;
  }

  /** Creates and stores a token; removes expired ones. @throws like `list` */
  mint(grant: TokenGrant, ids: Ids = nanoidIds()): MintedToken {
    const minted = mintToken(grant, this.#clock, ids);
    const now = this.#clock.now();
    withFileLock(this.#path, () => {
      const remaining = this.list().filter(({ expires_at }) => expires_at === null || Date.parse(expires_at) > now);
      const known = remaining.find((record) => isLookAlike(record.actor, grant.actor));
      if (known !== undefined) {
        throw usageError(
          `the actor cannot be told from ${JSON.stringify(known.actor)} of ${known.id}: ` +
            'write the name of that person as it is written there, or give another person another name',
        );
      }
      if (remaining.length >= TOKENS_MAX) {
        throw usageError(`there are ${TOKENS_MAX} tokens already: revoke some first`);
      }
      this.#write([...remaining, minted.record]);
    });
    return minted;
  }

  /** @returns whether the token existed */
  revoke(id: string): boolean {
    return withFileLock(this.#path, () => {
      const tokens = this.list();
      const remaining = tokens.filter((record) => record.id !== id);
      if (remaining.length === tokens.length) return false;
      this.#write(remaining);
      return true;
    });
  }

  #write(tokens: readonly TokenRecord[]): void {
    replaceFile(this.#path, `${JSON.stringify({ version: 1, tokens }, null, 2)}\n`, MODE);
  }

  /** The current records; none if the file cannot be trusted, so that no token is accepted. */
  #current(): readonly TokenRecord[] {
    const stamp = stampOf(this.#path);
    if (stamp === this.#stamp) return this.#records;
    this.#stamp = stamp;
    try {
      this.#records = this.list();
    } catch {
      this.#records = [];
    }
    return this.#records;
  }
}

/** Changes whenever the file changes, because it is always replaced as a whole. */
function stampOf(path: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    return errorCode(error);
  }
}
