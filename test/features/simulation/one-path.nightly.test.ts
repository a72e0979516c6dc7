// 10,000 requests under 40 policies. `npm run campaign -- one-path` sends 200,000.

import './one-path.test.js';
