// All seeds of the suite in this folder.

import './simulation.test.js';
