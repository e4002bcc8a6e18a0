"""What a run makes public: a branch and its pull request, a review, links and notes."""
