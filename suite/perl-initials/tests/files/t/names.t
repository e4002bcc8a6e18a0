use strict;
use warnings;
use Test::More;
use Names qw(initials);

is(initials("Ada Lovelace"), "AL", "upper");
is(initials("ada lovelace"), "AL", "lower");
done_testing();
