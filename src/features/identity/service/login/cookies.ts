// The cookies of the page. Over TLS their names begin with `__Host-`: the browser then accepts them only from this
// very host, over TLS, for all paths. On loopback without TLS no browser has to accept such a cookie, so there the
// name has the port instead, because all services of one address share their cookies.

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
