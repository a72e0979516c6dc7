// The suite in this folder, which prints its figure here.

import './one-path.test.js';
