// typedoc, which only the site needs: `npm ci --prefix tools/ci` installs it.
export * from 'typedoc';
