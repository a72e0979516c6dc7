// The HTTP client of a bench, which nothing else needs: `npm ci --prefix tools/ci` installs it.
export { default } from 'autocannon';
