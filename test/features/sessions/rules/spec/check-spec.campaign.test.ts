// More random specs and paths.

import './check-spec.test.js';
