package Labels;
use strict;
use warnings;
use Exporter "import";
our @EXPORT_OK = qw(label);

sub label {
    my ($name) = @_;
    return $name ? $name : "unknown";
}

1;
