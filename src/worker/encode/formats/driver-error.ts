// Failures in the PlanetScale protocol: an object with a code, and a text that adapters parse.
import type { Permission } from '../../../shared/clients/client.ts';
import type { FailureCode } from '../../../shared/failure-codes.ts';
import type { AnyFailure, Outcome, RenderFailure } from '../../failure/failure.ts';
import { jsonType } from '../head.ts';

/** The object in `error`. `outcome` is an addition: clients of the protocol ignore it, and pass it on in the error's body. */
export type DriverError = {
  readonly code: string;
  readonly message: string;
  /** The permission that the client lacks. */
  readonly missing?: Permission;
  readonly outcome: Outcome;
};

/** A failure of MySQL's or of the gateway's own. */
export function describeDriverError(failure: AnyFailure): DriverError {
  const { code, message, outcome, missing } = failure;
  if (code === null) {
    const { errno, sqlState } = failure.error;
    return { code: vitessCode(errno), message: withNumbers(message, errno, sqlState), outcome };
  }
  const numbers = alike[code];
  return {
    code,
    message: numbers === undefined ? message : withNumbers(message, ...numbers),
    ...(missing !== undefined && { missing }),
    outcome,
  };
}

/** A failure that is the whole reply. */
export const renderDriverFailure: RenderFailure = (failure) => ({
  contentType: jsonType,
  body: JSON.stringify({ error: describeDriverError(failure) }),
});

/** Adapters look for the numbers at the end of a one-line text. */
function withNumbers(message: string, errno: number, sqlState: string): string {
  return `${message} (errno ${errno}) (sqlstate ${sqlState})`;
}

/** The numbers that MySQL, its C client or Vitess use in the same case. With them adapters treat a failure of the gateway as they treat MySQL's. */
const alike: Partial<Readonly<Record<FailureCode, readonly [errno: number, sqlState: string]>>> = {
  UNAUTHORIZED: [1045, '28000'],
  FORBIDDEN: [1142, '42000'],
  AUTH_BUSY: [1040, '08004'],
  TOO_MANY_CONNECTIONS: [1040, '08004'],
  CLIENT_BUSY: [1040, '08004'],
  QUEUE_FULL: [1040, '08004'],
  WAITED_TOO_LONG: [1040, '08004'],
  DEADLINE_WAITING: [1040, '08004'],
  DATABASE_UNREACHABLE: [2003, 'HY000'],
  DATABASE_REFUSED: [1045, '28000'],
  NO_PRIMARY: [2003, 'HY000'],
  CONNECTION_LOST: [2013, 'HY000'],
  COMMIT_RUNNING: [2013, 'HY000'],
  STOPPING: [1053, '08S01'],
  DEADLINE_RUNNING: [3024, 'HY000'],
  KILLED: [1317, '70100'],
  TRANSACTION_ENDED: [1317, '70100'],
  READ_ONLY: [1792, '25006'],
  NO_SQL: [1065, '42000'],
  BODY_TOO_LARGE: [1153, '08S01'],
  STATEMENT_TOO_LARGE: [1153, '08S01'],
};

/** Vitess's code for an error of MySQL's (vtrpc.Code); UNKNOWN if it is not listed. */
export function vitessCode(errno: number): string {
  return codes.get(errno) ?? 'UNKNOWN';
}

/**
 * By `convertErrorCode` in Vitess's go/vt/vttablet/tabletserver/tabletserver.go; later ones by the groups of
 * go/mysql/sqlerror/constants.go. 1290 is CLUSTER_EVENT since buffering knows that, and CANCELED is what sql_error.go makes 1317 of.
 */
const asVitess = {
  UNIMPLEMENTED: [1235, 1295],
  RESOURCE_EXHAUSTED: [
    1021, 1037, 1038, 1040, 1041, 1114, 1129, 1135, 1151, 1153, 1203, 1206, 1226,
  ],
  DEADLINE_EXCEEDED: [1205, 3024],
  CANCELED: [1317],
  UNAVAILABLE: [1053, 3168],
  NOT_FOUND: [1008, 1017, 1029, 1032, 1054, 1094, 1109, 1122, 1141, 1146, 1147, 1176],
  PERMISSION_DENIED: [1044, 1045, 1095, 1211, 1227],
  FAILED_PRECONDITION: [
    1046, 1082, 1091, 1099, 1100, 1104, 1148, 1162, 1165, 1169, 1173, 1179, 1207, 1215, 1216, 1217,
    1223, 1230, 1236, 1241, 1242, 1243, 1264, 1288, 1289, 1291, 1305, 1364, 1414, 1451, 1452, 1831,
    1874,
  ],
  CLUSTER_EVENT: [1290],
  ALREADY_EXISTS: [1007, 1050, 1062, 1086, 1125],
  ABORTED: [1078, 1080, 1152, 1213],
  INVALID_ARGUMENT: [
    1047, 1048, 1049, 1051, 1052, 1055, 1056, 1057, 1058, 1059, 1060, 1061, 1063, 1064, 1065, 1066,
    1067, 1068, 1069, 1070, 1071, 1072, 1073, 1074, 1075, 1083, 1084, 1085, 1089, 1090, 1093, 1096,
    1097, 1101, 1102, 1103, 1106, 1107, 1108, 1110, 1111, 1113, 1115, 1116, 1117, 1118, 1120, 1121,
    1128, 1136, 1138, 1139, 1140, 1144, 1149, 1166, 1167, 1170, 1171, 1172, 1192, 1193, 1204, 1210,
    1221, 1222, 1225, 1228, 1229, 1231, 1232, 1233, 1234, 1238, 1239, 1240, 1245, 1247, 1248, 1250,
    1253, 1265, 1267, 1270, 1271, 1272, 1273, 1280, 1281, 1283, 1292, 1293, 1294, 1298, 1300, 1366,
    1367, 1406, 1411, 1416, 1449, 1450, 1525, 1583, 1690, 3055, 3140, 3141, 3142, 3144, 3147, 3150,
    3157, 3684, 3685, 3686, 3687, 3688, 3689, 3690, 3691, 3692, 3693, 3694, 3695, 3696, 3697, 3698,
    3699, 3700, 3704, 3705, 3706, 3887, 3900, 3995,
  ],
};

/** Numbers that Vitess does not know: MariaDB's own, and MySQL's that resemble those above. */
const likeThem = {
  DEADLINE_EXCEEDED: [1969],
  PERMISSION_DENIED: [1142, 1143],
  FAILED_PRECONDITION: [1792],
  CLUSTER_EVENT: [1836],
  ABORTED: [1020],
};

const codes: ReadonlyMap<number, string> = new Map(
  [asVitess, likeThem].flatMap((table) =>
    Object.entries(table).flatMap(([code, numbers]) =>
      numbers.map((errno) => [errno, code] as const),
    ),
  ),
);
