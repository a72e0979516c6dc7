// Where an imported file is. jest asks for each import of each file of each suite, and keeps no answer for names that
// the configuration's `moduleNameMapper` changes, as it does all of ours.

const places = new Map();

export default function resolve(path, options) {
  if (!/^[./]/.test(path)) return options.defaultResolver(path, options);
  const name = path.startsWith('/') ? path : `${options.basedir}\0${path}`;
  const known = places.get(name);
  if (known !== undefined) return known;
  const place = options.defaultResolver(path, options);
  places.set(name, place);
  return place;
}
