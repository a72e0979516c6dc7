// The cookies of the page. Over TLS their names begin with `__Host-`: the browser then accepts them only from this
// very host, over TLS, for all paths. On loopback without TLS no browser has to accept such a cookie, so there the
// name has the port instead, because all services of one address share their cookies.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const NAMES = { session: 'turnpike-session', login: 'turnpike-login' } as const;

export interface CookieJar {
  /** The value of a cookie in a Cookie header; null if it is not there, or there twice. */
  read(name: keyof typeof NAMES, header: string | null): string | null;
  /** A Set-Cookie header. `maxAgeSeconds` 0 removes the cookie. */
  write(name: keyof typeof NAMES, value: string, maxAgeSeconds: number): string;
}

/** @param origin of the page, as browsers see it */
export function createCookieJar(origin: string): CookieJar {
  const { protocol, port } = new URL(origin);
  const isSecure = protocol === 'https:';
  const nameOf = (name: keyof typeof NAMES): string =>
    isSecure ? `__Host-${NAMES[name]}` : `${NAMES[name]}-${port === '' ? '80' : port}`;
  return {
    read(name, header) {
      const prefix = `${nameOf(name)}=`;
      const values = (header ?? '').split(';').flatMap((part) => {
        const cookie = part.trim();
        return cookie.startsWith(prefix) ? [cookie.slice(prefix.length)] : [];
      });
      const [value = null] = values;
      return values.length === 1 ? value : null;
    },
    write(name, value, maxAgeSeconds) {
      // The issuer's page sends the browser back, so the cookie of a login must come along with such a navigation.
      const sameSite = name === 'session' ? 'Strict' : 'Lax';
      const attributes = `Path=/; HttpOnly; SameSite=${sameSite}; Max-Age=${maxAgeSeconds}`;
      return `${nameOf(name)}=${value}; ${attributes}${isSecure ? '; Secure' : ''}`;
    },
  };
}

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

interface TextSeal {
  seal(text: string): string;
  /** Null for what this seal has not made. */
  open(sealed: string): string | null;
}

/**
 * Seals a short text for a cookie: a holder of the cookie can neither read nor change it. The key lives as long as the
 * process.
 */
export function createTextSeal(): TextSeal {
  const key = randomBytes(32);
  return {
    seal(text) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce);
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url');
    },
    open(sealed) {
      const bytes = Buffer.from(sealed, 'base64url');
      if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
      try {
        const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
        decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
        const body = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
        return Buffer.concat([body, decipher.final()]).toString('utf8');
      } catch {
        return null;
      }
    },
  };
}
