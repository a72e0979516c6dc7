import type { Route } from './route.js';
import { methodsOf } from './route.js';

type IndexedRoute = Pick<Route, 'method' | 'path' | 'head'>;

/** The routes by their paths. What is found does not depend on the method: a path has one or several. */
export class RouteIndex<R extends IndexedRoute> {
  /** By the number of parts: each with its parts, null where any part fits. */
  readonly #byLength = new Map<number, { readonly parts: readonly (string | null)[]; readonly route: R }[]>();

  constructor(routes: readonly R[]) {
    for (const route of routes) {
      const parts = route.path.split('/').map((part) => (part.startsWith('{') ? null : part));
      const same = this.#byLength.get(parts.length) ?? [];
      this.#byLength.set(parts.length, [...same, { parts, route }]);
    }
  }

  /** The routes at a path. */
  find(path: string): readonly R[] {
    const segments = path.split('/');
    const routes: R[] = [];
    for (const { parts, route } of this.#byLength.get(segments.length) ?? []) {
      if (parts.every((part, at) => part === null || part === segments[at])) routes.push(route);
    }
    return routes;
  }

  /** The methods that a path has: none where there is nothing. */
  methods(path: string): readonly string[] {
    return this.find(path).flatMap(methodsOf);
  }
}
