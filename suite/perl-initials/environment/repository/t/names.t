use strict;
use warnings;
use Test::More;
use Names qw(initials);

is(initials("Ada Lovelace"), "AL", "upper");
done_testing();
